"""The commands of docs/tutorial.md do what it says; tests/unit/docs/test_tutorial_doc.py talks to its agents."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from lab.server.authors import START, make_environ, send
from lab.server.nginx import NAME, Nginx
from lab.server.test_from_nothing import make_stack
from tests import ROOT, backend
from tests.support.execution.waiting import eventually
from tests.support.ports import free_port
from tests.support.printing_process import PATIENCE, Process

BLOCKS: list[tuple[str, str]] = re.findall(
    r"^```(\w+)\n(.*?)^```$",
    (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)
DEMO = "examples.demo"


def block(kind: str, word: str) -> str:
    """The page's only block of this kind that has the word."""
    (found,) = [text for named, text in BLOCKS if named == kind and word in text]
    return found


def run(text: str, here: Path, env: dict[str, str], **changed: str) -> str:
    """Run lines of the page in a folder, and return what they print. `changed`: other words for some of the page's."""
    for old, new in changed.items():
        text = text.replace(old, new)
    done = subprocess.run(  # noqa: S603 - the page's own words
        ["/bin/sh", "-e", "-c", text],
        cwd=here,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def apps(text: str) -> str:
    """The apps that a block hosts."""
    (found,) = re.findall(r"A2A_APPS=(\S+)", text)
    return str(found)


def list_tasks(url: str, agent: str = "trips") -> list[dict[str, Any]]:
    """The tasks of an agent, the newest first."""
    with urllib.request.urlopen(f"{url}/agents/{agent}/tasks", timeout=PATIENCE) as answer:  # noqa: S310 - ours
        found: list[dict[str, Any]] = json.load(answer)["tasks"]
    return found


def task(url: str) -> dict[str, Any]:
    """The newest task of the first agent."""
    return list_tasks(url)[0]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder like a clone of the repository, with the first agent."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("manage.py", "deploy", "requirements-pydantic-ai.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    run(block("sh", "startagent trips").splitlines()[0], tmp_path, make_environ(tmp_path, DEMO))
    return tmp_path


@pytest.mark.backend("sqlite")
class TestOnOneMachine:
    def test_the_first_agent_answers_as_soon_as_it_is_written(self, here: Path) -> None:
        env = make_environ(here, apps(block("sh", "startagent trips")))
        (line,) = [text for kind, text in BLOCKS if kind == "sh" and text.startswith("curl")]
        with Process(sys.executable, "manage.py", "up", env=env) as host:
            url = host.line("  start", START).split()[-1]
            answer = run(line, here, env, **{"http://127.0.0.1:8000/": url})
            assert json.loads(answer)["task"]["artifacts"][0]["parts"] == [{"text": "HELLO"}]
            host.signal(signal.SIGTERM)
            host.exit_code()

    def test_a_killed_host_goes_on_and_books_nothing_twice(self, here: Path) -> None:
        (here / "trips" / "agents.py").write_text(block("python", "def book"))
        env = make_environ(here, apps(block("sh", "trips make run")))
        with Process(sys.executable, "manage.py", "up", env=env) as first:
            number = first.line("The host is up", START).split()[-4].rstrip(".")
            url = first.line("  start", START).split()[-1].removesuffix("/")
            send(f"{url}/agents/trips", "Rome Oslo Lima", returnImmediately=True)
            eventually(lambda: "Oslo is booked" in json.dumps(task(url)), PATIENCE)
            run(block("sh", "kill -9"), here, env, PROCESS=number)
            assert first.exit_code() == -signal.SIGKILL
        with Process(sys.executable, "manage.py", "up", env=env) as second:
            url = second.line("  start", START).split()[-1].removesuffix("/")
            eventually(lambda: "COMPLETED" in json.dumps(task(url)["status"]), START)
            booked = [one for one in (*first.said, *second.said) if one.startswith("booking")]
            assert booked == ["booking Rome", "booking Oslo", "booking Lima"]
            second.signal(signal.SIGTERM)
            second.exit_code()

    def test_a_killed_tree_of_agents_goes_on_and_calls_nobody_twice(self, here: Path) -> None:
        env = make_environ(here, apps(block("sh", "examples.travel")))
        with Process(sys.executable, "manage.py", "up", env=env) as first:
            number = first.line("The host is up", START).split()[-4].rstrip(".")
            url = first.line("  start", START).split()[-1].removesuffix("/")
            begun = send(f"{url}/agents/planner", "Rome", returnImmediately=True)
            eventually(lambda: list_tasks(url, "flights") and list_tasks(url, "hotels"), PATIENCE)
            run(block("sh", "kill -9"), here, env, PROCESS=number)
            assert first.exit_code() == -signal.SIGKILL
        with Process(sys.executable, "manage.py", "up", env=env) as second:
            url = second.line("  start", START).split()[-1].removesuffix("/")
            asks = "TASK_STATE_INPUT_REQUIRED"
            eventually(lambda: list_tasks(url, "planner")[0]["status"]["state"] == asks, START)
            done = send(f"{url}/agents/planner", "yes", task=begun["id"])
            assert done["status"]["state"] == "TASK_STATE_COMPLETED"
            assert "booked: flight to Rome" in json.dumps(done["artifacts"])
            for agent in ("flights", "hotels", "booking"):
                assert len(list_tasks(url, agent)) == 1
            second.signal(signal.SIGTERM)
            second.exit_code()

    def test_an_agent_of_a_framework_is_written_and_passes_its_tests(self, here: Path) -> None:
        lines = block("sh", "--kind").replace("pip install", "pip install --dry-run --no-index")
        install, write, test = lines.splitlines()
        env = make_environ(here, DEMO)
        assert "Would install" not in run(install, here, env)
        run(write, here, env)
        run(test, here, {**env, "A2A_APPS": "assistant", "DATABASE_URL": "", "REDIS_URL": ""})


@pytest.mark.backend("sqlite")
def test_the_picture_of_the_readme_is_made_of_a_host_that_is_killed(tmp_path: Path) -> None:
    script, picture = ROOT / "docs" / "images" / "make_resume.py", tmp_path / "resume.svg"
    env = backend.children()
    subprocess.run([sys.executable, script, picture], env=env, check=True, timeout=100)  # noqa: S603
    shown = re.findall(r">([^<>]+)</text>", picture.read_text(encoding="utf-8"))
    for once in ("booking Rome", "booking Oslo", "booking Lima", "booking Cairo"):
        assert shown.count(once) == 1
    assert len([line for line in shown if line.startswith("$ kill -9")]) == 1
    assert shown[-1].endswith("completed")


@pytest.mark.backend("stack")
@pytest.mark.nginx
@pytest.mark.django_db(transaction=True)
def test_production_answers_behind_nginx(here: Path) -> None:
    env = make_environ(here, DEMO)
    lines = block("sh", "make stack").replace("agents.example.com", NAME).splitlines()
    exports = [line for line in lines if line.startswith("export") and "DATABASE" not in line]
    exported = run("\n".join([*exports, "env -0"]), here, env)
    env |= dict(line.split("=", 1) for line in exported.split("\0") if line)
    key = [run(line, here, env) for line in lines if "manage.py" in line][-1].split()[-1]
    copy, _, *curl = block("sh", "deploy/nginx").splitlines()
    run(copy, here, env, **{"/etc/nginx/conf.d/": "."})
    with (
        make_stack(env) as (_, url),
        Nginx(int(url.rpartition(":")[2]), free_port()) as proxy,
    ):
        there = {"https://agents.example.com": f"--cacert {proxy.authority} {https(proxy)}"}
        answer = run("\n".join(curl), here, env, KEY=key, **there)
    assert "ROME OSLO" in answer


def https(proxy: Nginx) -> str:
    """The URL of the proxy."""
    return f"https://{NAME}:{proxy.port}"
