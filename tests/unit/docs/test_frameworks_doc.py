"""docs/frameworks.md names every adapter, and its agents do what the page says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from a2a_tasks.agents import Agent, registry
from a2a_tasks.frameworks.table import CALLABLE, FRAMEWORKS
from a2a_tasks.testing import Talk
from tests import ROOT
from tests.unit.docs.test_agents_doc import BLOCK, executed, said_by

PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
BLOCKS = BLOCK.findall(PAGE)
#: Each block of Python with the conversation after it.
EXAMPLES = [
    (source, BLOCKS[at + 1][1]) for at, (kind, source) in enumerate(BLOCKS) if kind == "python"
]


@pytest.fixture
def unregistered() -> Iterator[None]:
    """Forget the agents of the page."""
    before = dict(registry._found)
    yield
    for slug in registry._found.keys() - before.keys():
        type(registry._found.pop(slug)).abstract = True


def made_by(source: str) -> Agent:
    """The agent that a block hosts, or whose class it defines."""
    before = dict(registry._found)
    space = executed(source)
    if new := registry._found.keys() - before.keys():
        return registry._found[new.pop()]
    made = [v for v in space.values() if inspect.isclass(v) and issubclass(v, Agent)]
    (cls,) = [cls for cls in made if not cls.abstract]
    cls.abstract = True
    return cls()


@pytest.mark.usefixtures("unregistered")
@pytest.mark.parametrize(("source", "conversation"), EXAMPLES)
async def test_an_agent_of_the_page_says_what_the_page_shows(
    source: str, conversation: str
) -> None:
    agent = made_by(source)
    assert list(agent.check()) == []
    talk, heard = Talk(agent), []
    for line in conversation.splitlines():
        if line.startswith(">"):
            heard += [line, *(await said_by(talk, line[1:].strip()))]
    assert heard == conversation.splitlines()


def test_an_existing_agent_is_hosted_in_six_lines() -> None:
    assert len([line for line in EXAMPLES[0][0].splitlines() if line]) <= 6


def test_every_adapter_is_on_the_page() -> None:
    named = re.findall(r"`(a2a_tasks\.frameworks\.[\w.]+)`\]", PAGE)
    assert named == [row.adapter.replace(":", ".") for row in (*FRAMEWORKS, CALLABLE)]
