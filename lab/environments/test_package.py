"""`a2a-host-worker` in an empty virtual environment: it needs nothing else, and has neither a web server nor an admin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tests import ROOT, backend
from tests.journeys.hosts import Host
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import message
from tests.support.processes import Child

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
SOURCES = ("a2a_frameworks", "a2a_host", "a2a_project", "a2a_push", "a2a_tasks", "worker")
#: Packages of the host that a worker does not have.
ABSENT = (
    "a2a",
    "channels",
    "daphne",
    "uvicorn",
    "rest_framework",
    "grpclib",
    "a2a_console",
    "a2a_grpc",
)
AGENTS = """
from a2a_tasks.agents import Agent, Skill


class FromAfar(Agent):
    name = "From afar"
    description = "Greets from its own environment."
    skills = [Skill("greet", "Greet", "Greets.", tags=["greet"])]

    async def run(self, turn):
        yield f"Hello {turn.text}"
"""


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """Run a command, and return what it says."""
    done = subprocess.run(  # noqa: S603 - our own command lines
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the package, and the packages that it asks for."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("made")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    wheels: Sequence[str] = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(made))
    run(sys.executable, "-m", "pip", "wheel", "--quiet", *wheels, source / "worker")
    run(sys.executable, "-m", "venv", made / "venv")
    (wheel,) = made.glob("*.whl")
    run(made / "venv/bin/pip", "install", "--quiet", wheel)
    return made / "venv"


def start(environment: Path, directory: Path) -> Child:
    """Start the worker of the environment, with the app in this directory."""
    given = {**backend.children(), "A2A_ENVIRONMENT": "afar", "A2A_APPS": "afar"}
    for name in ("DJANGO_SETTINGS_MODULE", "PYTHONPATH"):
        given.pop(name, None)
    return Child(
        subprocess.Popen(  # noqa: S603 - our own command line
            [environment / "bin/a2a-host-worker"],
            cwd=directory,
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )


async def test_its_agents_answer_at_a_host_that_does_not_have_them(
    environment: Path, site: Host, tmp_path: Path
) -> None:
    (tmp_path / "afar").mkdir()
    (tmp_path / "afar/__init__.py").touch()
    (tmp_path / "afar/agents.py").write_text(AGENTS)
    worker = start(environment, tmp_path)
    try:
        worker.wait_for(" ready.", 120)
        url = f"{site.here}/agents/from-afar"
        async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:

            async def is_served() -> bool:
                answer = await http.get(f"{url}/.well-known/agent-card.json")
                return answer.status_code == 200

            await eventually(is_served, "the agent is served")
            answer = await http.post(f"{url}/message:send", json=message("you"))
        (artifact,) = answer.json()["task"]["artifacts"]
        assert artifact["parts"][0]["text"] == "Hello you"
    finally:
        worker.stop()


def test_it_is_small(environment: Path) -> None:
    look = f"import importlib.util as u; print([n for n in {ABSENT!r} if u.find_spec(n)])"
    assert run(environment / "bin/python", "-c", look, cwd=environment).strip() == "[]"


def test_without_the_variables_of_the_host_it_says_what_is_missing(
    environment: Path, tmp_path: Path
) -> None:
    done = subprocess.run(  # noqa: S603 - our own command line
        [environment / "bin/a2a-host-worker"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "The environment is wrong. A worker needs the host's SECRET_KEY and DATABASE_URL and REDIS_URL"
    ]
