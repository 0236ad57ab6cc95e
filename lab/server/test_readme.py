"""The README's commands and programs do what it says, word for word, against a host started by `up`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.server.authors import START, make_environ
from tests import ROOT, backend
from tests.support.printing_process import PATIENCE, Process

BLOCKS: list[tuple[str, str]] = re.findall(
    r"^```(\w+)\n(.*?)^```$",
    (ROOT / "README.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)

pytestmark = pytest.mark.backend("sqlite")


def block(kind: str, word: str) -> str:
    """The README's only block of this kind that has the word."""
    (found,) = [text for named, text in BLOCKS if named == kind and word in text]
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent that the README's `startagent` writes."""
    folder = tmp_path_factory.mktemp("checkout")
    line = block("sh", "startagent").splitlines()[0]
    words = line.replace(".venv/bin/python manage.py", f"{sys.executable} {ROOT}/manage.py")
    subprocess.run(words.split(), cwd=folder, env=backend.children(), check=True)  # noqa: S603
    return folder


@pytest.fixture(scope="module")
def url(here: Path) -> Iterator[str]:
    """A host with the README's two agents."""
    (agents,) = re.findall(r"A2A_APPS=(\S+)", block("sh", "startagent"))
    with Process(sys.executable, "manage.py", "up", env=make_environ(here, agents)) as host:
        yield host.line("  start", START).split()[-1].removesuffix("/")
        host.signal(signal.SIGTERM)
        assert host.exit_code() == 0, host.transcript()


def run(command: list[str], text: str, url: str) -> str:
    """Hand the text to a program on its standard input, at this host, and return what it prints."""
    there = text.replace("http://127.0.0.1:8000", url)
    done = subprocess.run(  # noqa: S603 - the README's own words
        command, input=there, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_lines_of_curl_bring_an_answer_and_a_stream(url: str) -> None:
    answer, *stream = run(["sh", "-e"], block("sh", "message:send"), url).splitlines()
    assert '"parts":[{"text":"hello"}]' in answer
    assert all("TASK_STATE_COMPLETED" in text for text in (answer, "".join(stream)))
    assert sum('"artifactUpdate"' in line for line in stream) == 5


def test_the_agent_answers(url: str) -> None:
    lines = block("sh", "message:send").replace("agents/demo", "agents/shouter")
    assert '"text":"ECHO HELLO"' in run(["sh", "-e"], lines, url)


def test_the_client_prints_the_pieces(url: str) -> None:
    printed = run([sys.executable, "-"], block("python", "create_client"), url)
    assert [line[:18] for line in printed.splitlines() if "#" in line] == [
        f"artifact_update #{number}" for number in range(3)
    ]
