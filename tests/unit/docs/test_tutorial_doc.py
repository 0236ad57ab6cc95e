"""The agents of docs/tutorial.md do what it shows; lab/server/test_tutorial.py runs its commands."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from a2a_tasks.testing import Talk
from tests import ROOT
from tests.unit.docs.test_agents_doc import BLOCK, said_by
from tests.unit.docs.test_frameworks_doc import made_by, unregistered

__all__ = ["unregistered"]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = BLOCK.findall(PAGE)
#: The conversation with the agent that `startagent` writes, then those with the agents of the page.
FIRST, *TALKS = [text for kind, text in BLOCKS if kind == "text"]
SOURCES = [text for kind, text in BLOCKS if kind == "python"]


def test_it_is_short() -> None:
    assert len(PAGE.split()) <= 950


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize(("source", "shown"), list(zip(SOURCES, TALKS, strict=True)))
async def test_an_agent_says_what_is_shown(source: str, shown: str) -> None:
    await check(source, shown)


@pytest.mark.usefixtures("unregistered")
async def test_the_first_agent_is_the_one_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call_command("startagent", "trips", stdout=StringIO())
    await check((tmp_path / "trips" / "agents.py").read_text(), FIRST)


async def check(source: str, shown: str) -> None:
    """Talk to the agent of a source, and compare."""
    agent = made_by(source)
    assert list(agent.check()) == []
    talk, heard = Talk(agent), []
    for line in shown.splitlines():
        if line.startswith(">"):
            heard += [line, *(await said_by(talk, line[1:].strip()))]
    assert heard == shown.splitlines()
