"""The command `a2a-host`, and Django's command line for a project of the host.

a2a-host new demo        writes a project: settings, manage.py, an agent
a2a-host agent add NAME  writes an agent into the project here, and its app into the settings
a2a-host manifest        writes the manifest of the agents here, for a host that does not have them
a2a-host up              `manage.py up` of the project here; so is every other command, such as `check`
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DatabaseError, DataError, IntegrityError

from a2a_tasks.audit import act_as, system

__all__ = ["main", "manage"]

USAGE = """a2a-host new NAME | up | agent add NAME | manifest | check | ...

new        write a project NAME: settings.py, manage.py, an agent
agent add  write an agent into the project here
manifest   write the agents of this environment (A2A_ENVIRONMENT) as JSON
up         migrate, create the first admin user, and serve; `up --help` has the options
Any other command is one of the project's manage.py."""
MANAGE = '''#!/usr/bin/env python
"""Django's command line for this project."""

from a2a_host.command import manage

if __name__ == "__main__":
    manage("settings")
'''
SETTINGS = '''"""The settings of the host, from environment variables, and the apps with agents of this project."""

import os
from pathlib import Path

os.environ.setdefault("VAR_DIR", str(Path(__file__).resolve().parent / "var"))
from a2a_project.settings import *
'''
#: The agent of a new project.
FIRST = "hello"
#: The commands that show warnings about the settings; others would repeat them before each answer.
SHOW_WARNINGS = {"check", "up", "migrate", "test", "runserver"}
WARNINGS = {f"{app}.W{number:03}" for app in ("a2a_tasks", "a2a_push") for number in range(100)}


def main() -> None:
    """Run the command of the arguments. SystemExit with the reason if it cannot be run."""
    match sys.argv[1:]:
        case ["new", name]:
            write_project(Path(name))
        case ["agent", "add", name, *options]:
            add_agent(name, *options)
        case ["manifest"]:
            become("agent_versions", "manifest")
        case [] | ["-h" | "--help" | "help" | "new" | "agent", *_]:
            sys.exit(USAGE)
        case arguments:
            become(*arguments)


def become(*arguments: str) -> None:
    """Replace this process by a command of the project in the working directory. SystemExit if there is no project."""
    os.execv(sys.executable, command(*arguments))  # noqa: S606  # nosec B606 - it gets the signals


def command(*arguments: str) -> list[str]:
    """Return a command of the project in the working directory. SystemExit if there is none."""
    if not Path("manage.py").is_file():
        sys.exit("There is no manage.py here. `a2a-host new NAME` writes a project.")
    return [sys.executable, "manage.py", *arguments]


def write_project(directory: Path) -> None:
    """Write a project with an agent into a new directory."""
    if directory.exists():
        sys.exit(f"{directory} exists already. Give a new name.")
    directory.mkdir(parents=True)
    (directory / "manage.py").write_text(MANAGE, encoding="utf-8")
    (directory / "settings.py").write_text(SETTINGS, encoding="utf-8")
    os.chdir(directory)
    add_agent(FIRST)
    print(f"To serve it: cd {directory} && a2a-host up")  # noqa: T201


def add_agent(name: str, *options: str) -> None:
    """Write an agent into the project here, and its app into the settings, if `new` has written them."""
    startagent = command("startagent", name, *options)
    done = subprocess.run(startagent, stdout=subprocess.DEVNULL, check=False)  # noqa: S603 - our own command
    if done.returncode:
        sys.exit(done.returncode)
    line = f'INSTALLED_APPS += ["{name}"]\n'
    with suppress(FileNotFoundError), Path("settings.py").open("r+", encoding="utf-8") as file:
        file.seek(0, os.SEEK_END)
        file.write(line)
        line = ""
    print(f"{name}/agents.py is the agent, {name}/tests.py tests it.")  # noqa: T201
    if line:
        print(f"To host it, add to the settings: {line}", end="")  # noqa: T201


def manage(settings_module: str) -> None:
    """Run the command that the arguments name. SystemExit with one line for a mistake in environment or database."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings_module)
    try:
        _ = settings.INSTALLED_APPS
    except ImproperlyConfigured as fault:
        sys.exit(f"The environment is wrong. {fault}")
    if not SHOW_WARNINGS & set(sys.argv[1:2]):
        settings.SILENCED_SYSTEM_CHECKS = WARNINGS.union(settings.SILENCED_SYSTEM_CHECKS)
    try:
        with act_as(lambda: system(" ".join(sys.argv[1:2]))):
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as fault:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"The host cannot start. {fault}")
    except DatabaseError as fault:
        # For a violated constraint the traceback says more.
        if "--traceback" in sys.argv or isinstance(fault, IntegrityError | DataError):
            raise
        explain = import_module("a2a_tasks.management.database").explain  # it needs settings
        sys.exit(explain(fault))
