"""docs/frameworks.md names every adapter and its page, and the agents of these pages do what they say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import a2a_frameworks
from a2a_frameworks.table import CALLABLE, FRAMEWORKS
from a2a_tasks.agents import Agent, registry
from a2a_tasks.testing import Talk
from tests import ROOT
from tests.unit.docs.test_agents_doc import BLOCK, executed, said_by

PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
#: The page of each framework, by its name.
PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs" / "frameworks").glob("*.md"))
}


def find_examples(page: str) -> Iterator[tuple[str, str]]:
    """Each block of Python with the conversation after it."""
    blocks = BLOCK.findall(page)
    for at, (kind, source) in enumerate(blocks):
        if kind == "python":
            yield source, blocks[at + 1][1]


EXAMPLES = [example for page in (PAGE, *PAGES.values()) for example in find_examples(page)]


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
    named = re.findall(r"`(a2a_frameworks\.[\w.]+)`\]", PAGE)
    assert named == [row.adapter.replace(":", ".") for row in (*FRAMEWORKS, CALLABLE)]


def test_every_adapter_has_a_page_that_the_table_and_its_code_name() -> None:
    adapters = [row.adapter.replace(":", ".") for row in (*FRAMEWORKS, CALLABLE)]
    linked = re.findall(r"`(a2a_frameworks\.[\w.]+)`\]\(frameworks/([\w-]+)\.md\)", PAGE)
    folders = [adapter.split(".")[1] for adapter in adapters]
    assert linked == [
        (adapter, folder.replace("_", "-"))
        for adapter, folder in zip(adapters, folders, strict=True)
    ]
    assert PAGES.keys() == {name for _, name in linked}
    for folder, (_, name) in zip(folders, linked, strict=True):
        code = Path(a2a_frameworks.__file__).with_name(folder) / "agent.py"
        assert f"docs/frameworks/{name}.md is the guide" in code.read_text(encoding="utf-8")
