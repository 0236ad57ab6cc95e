"""`manage.py startagent NAME [DIRECTORY]`: write a Django app with an agent in it, and print how to host it."""

from __future__ import annotations

import keyword
import os
import re
import sys
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.core.management.templates import TemplateCommand

from a2a_tasks.agents import registry
from a2a_tasks.agents.frameworks import find_install_line
from a2a_tasks.agents.security import allows_anonymous
from a2a_tasks.conf import conf

__all__ = ["Command"]

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
#: The kinds of agents: folders with `agents.py` and `tests.py`, and the packages that some need.
KINDS = sorted(path.name for path in (TEMPLATES / "agents").iterdir())
PACKAGES = {"langgraph": "langgraph", "openai-agents": "agents", "pydantic-ai": "pydantic_ai"}
#: A valid name for a package, an app label and, with hyphens, a URL.
NAME = re.compile(r"[a-z][a-z0-9]*+(?:_[a-z0-9]++)*+")
MAX_LENGTH = 63
NEXT = """{title} is in {directory}: agents.py is the agent, tests.py tests it.

1. Host it: add "{path}" to INSTALLED_APPS, or start with
   A2A_APPS={hosted} {start}
2. Talk to it{needs}:
   curl -s http://127.0.0.1:{port}{url} {key}-H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \\
     -d '{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"1","role":"ROLE_USER","parts":[{{"text":"hello"}}]}}}}}}'

`manage.py test {path}.tests` runs its tests."""


class Command(TemplateCommand):
    """The command: it writes an app with an agent."""

    help = "Write a Django app with an agent: apps.py, agents.py and tests.py."
    missing_args_message = "Name the agent: manage.py startagent weather_report"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add a name and a directory."""
        parser.add_argument("name", help="the name in lower case, with underscores: weather_report")
        parser.add_argument(
            "directory", nargs="?", help="folder for the files; default: a new one of that name"
        )
        parser.add_argument(
            "--kind",
            choices=KINDS,
            default="text",
            help="text (default): the smallest agent; chat: any OpenAI-compatible model; form: a question with fields; "
            "long-running: durable steps; langgraph, openai-agents, pydantic-ai: an agent of that framework",
        )

    def handle(self, **options: Any) -> None:  # type: ignore[override]
        """Check the name, write the files, print the next steps."""
        name, target, kind = options.pop("name"), options.pop("directory"), options.pop("kind")
        directory = Path(target or name).expanduser().resolve()
        check_name(name)
        if line := find_install_line(PACKAGES.get(kind)):
            line = f"{sys.executable} -m {line}"  # the pip of a shell may be another one
            raise CommandError(f"An agent of the kind {kind} needs a package: {line}")
        check_empty(directory, named=bool(target))
        path = module(directory)
        words = name.removesuffix("_agent").split("_")
        about = {
            "app_path": path,
            "slug": name.replace("_", "-"),
            "title": name.replace("_", " ").capitalize(),
            "class_name": f"{''.join(map(str.capitalize, words))}Agent",
        }
        directory.mkdir(parents=True, exist_ok=True)
        settled = {"extensions": ["py"], "files": []}
        for template in (TEMPLATES / "agent_app", TEMPLATES / "agents" / kind):
            super().handle(
                "app", name, str(directory), **options, **settled, **about, template=str(template)
            )
        is_open = allows_anonymous()
        self.stdout.write(
            NEXT.format(
                title=about["title"],
                url=f"{conf.PREFIX}/agents/{about['slug']}/",
                directory=directory,
                path=path,
                hosted=",".join([*list_hosted_apps(), path]),
                start="make dev" if Path("Makefile").is_file() else "python manage.py up",
                port=os.environ.get("PORT", "8000"),
                needs="" if is_open else " (manage.py api_keys create me makes a KEY)",
                key="" if is_open else f"-H '{conf.API_KEY_HEADER}: KEY' ",
            )
        )

    def validate_name(self, name: str, name_or_dir: str = "name") -> None:
        """Accept any name: `check_name` has checked it, and the directory may have any name."""


def check_name(name: str) -> None:
    """Raise CommandError for a name that is invalid or taken."""
    if not NAME.fullmatch(name) or len(name) > MAX_LENGTH:
        raise CommandError(
            f"{name!r} is no name for an agent: lower-case letters, digits and single underscores, beginning "
            f"with a letter, at most {MAX_LENGTH}. For example: weather_report"
        )
    if keyword.iskeyword(name):
        raise CommandError(f"{name!r} is a word of Python itself. Choose another name.")
    hosted = registry.find_hosted(slug := name.replace("_", "-"))
    if hosted is not None:
        raise CommandError(
            f"An agent answers at /agents/{slug}/ already: "
            f"{type(hosted).__module__}.{type(hosted).__qualname__}. Choose another name."
        )


def check_empty(directory: Path, *, named: bool) -> None:
    """Raise CommandError if the directory has files that could be overwritten or mixed with the new ones."""
    if directory.exists() and (not named or not directory.is_dir() or any(directory.iterdir())):
        raise CommandError(f"{directory} is there already. Give an empty directory, or a new one.")


def module(directory: Path) -> str:
    """Return the directory's name for imports. Raises CommandError if it is invalid or another module has it."""
    path = make_module_name(directory)
    label = path.rpartition(".")[2]
    if not importable(label):
        raise CommandError(f"{label!r} cannot be imported. Give the directory another name.")
    if label in apps.app_configs:
        raise CommandError(f"An app called {label!r} is installed already. Choose another name.")
    found = find_spec(path) if path == label else None
    if found and found.origin:  # an empty directory is found, but without an origin
        raise CommandError(f"A Python module is called {path!r} already. Choose another name.")
    return path


def make_module_name(directory: Path) -> str:
    """Return the directory as a module below the working directory, if possible, else as a top-level one."""
    here = Path.cwd().resolve()
    steps = directory.relative_to(here).parts if directory.is_relative_to(here) else ()
    return ".".join(steps) if steps and all(map(importable, steps)) else directory.name


def importable(word: str) -> bool:
    """Return whether a module may have this name."""
    return word.isidentifier() and not keyword.iskeyword(word)


def list_hosted_apps() -> list[str]:
    """Return the apps whose agents are hosted now, as they are written in A2A_APPS."""
    found = [apps.get_containing_app_config(type(agent).__module__) for agent in registry.agents()]
    return sorted({app.name for app in found if app is not None})
