"""The README is short, and what it shows works."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from a2a_project import __version__
from a2a_tasks.agents import Agent
from tests import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(README)


def test_it_is_no_longer_than_a_page() -> None:
    assert len(README.splitlines()) <= 110


def test_the_agent_is_one() -> None:
    (source,) = [text for kind, text in BLOCKS if kind == "python" and "Agent" in text]
    space: dict[str, Any] = {"__name__": __name__}
    exec(source.replace("(Agent)", "(Agent, abstract=True)"), space)  # noqa: S102 - abstract: hosted nowhere
    agent = space["ShouterAgent"]
    assert issubclass(agent, Agent)
    assert list(agent().check()) == []


def test_the_clients_code_compiles() -> None:
    (source,) = [text for kind, text in BLOCKS if kind == "python" and "create_client" in text]
    compile(source, "talk.py", "exec")


def test_every_body_is_json() -> None:
    lines = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    bodies = [re.findall(r"-d ('.*?')", line) for line in lines]
    found = [json.loads(shlex.split(body)[0]) for line in bodies for body in line]
    assert len(found) == 3


def test_the_changelog_begins_with_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changes, flags=re.MULTILINE)[0] == __version__
