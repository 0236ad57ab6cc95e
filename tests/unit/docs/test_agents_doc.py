"""docs/agents.md, docs/agents/ and docs/delegation.md name all there is, and their agents do what the pages say."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest

from a2a_tasks import agents, checks
from a2a_tasks.agents import Agent, Journal, Part, Turn
from a2a_tasks.agents.emission import Chunk, Reply, StatusUpdate, ToolEvent
from a2a_tasks.conf import names
from a2a_tasks.testing import Talk
from tests import ROOT
from tests.support.examples.turns import make_turn

DOCS = ROOT / "docs"
GUIDE = "\n".join(
    page.read_text() for page in (DOCS / "agents.md", *sorted((DOCS / "agents").glob("*.md")))
)
CALLS = (DOCS / "delegation.md").read_text()
PAGE = f"{GUIDE}\n{CALLS}"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = [match[2] for match in BLOCK.finditer(PAGE)] + re.findall(r"`([^`\n]+)`", PAGE)


@dataclass(frozen=True)
class Example:
    """An agent of the page, and the conversations that follow it there."""

    source: str
    conversations: tuple[str, ...]

    def agent(self) -> Agent:
        """Define what the block defines, and make its (last) agent."""
        space = executed(self.source)
        made = [v for v in space.values() if inspect.isclass(v) and issubclass(v, Agent)]
        found: Agent = [cls for cls in made if not cls.abstract][-1]()
        return found


def executed(source: str, **known: Any) -> dict[str, Any]:
    """Run a block; returns what it defines."""
    space: dict[str, Any] = {"__name__": "docs.agents", **known}
    exec(compile(source, "docs/agents.md", "exec"), space)  # noqa: S102 - our own page
    return space


def found_examples() -> Iterable[Example]:
    """The blocks with agents, each with the text blocks after it."""
    blocks = [(match[1], match[2]) for match in BLOCK.finditer(GUIDE)]
    for at, (language, source) in enumerate(blocks):
        if language == "python" and "(Agent" in source:
            following = [kind for kind, _ in blocks[at + 1 :]] + ["python"]
            texts = blocks[at + 1 : at + 1 + following.index("python")]
            yield Example(source, tuple(text for _, text in texts))


EXAMPLES = list(found_examples())
NAMED = [re.findall(r"^class (\w+)", example.source, re.MULTILINE)[-1] for example in EXAMPLES]


def seen(said: StatusUpdate | Reply | Chunk, begun: set[str]) -> str:
    """One line for what a client sees."""
    match said:
        case StatusUpdate(state, parts):
            return state.word + (f": {shown(parts)}" if parts else "")
        case Reply(parts):
            return f"message: {shown(parts)}"
        case Chunk():
            sign = " +" if said.append and said.artifact_id in begun else ": "
            whole = said.last and not said.append
            begun.add(said.artifact_id)
            last = " (last)" if said.last and not whole else ""
            return f"artifact {said.artifact_id}{sign}{shown(said.parts)}{last}"


def shown(parts: Iterable[Part]) -> str:
    """Parts as the page writes them."""
    return " ".join(map(shown_part, parts))


def shown_part(part: Part) -> str:
    """A part as the page writes it."""
    if isinstance(part.text, str):
        return part.text
    if isinstance(part.raw, str):
        return f"{part.filename} ({part.media_type})"
    return "(form)" if "form" in part.data else json.dumps(part.data)


async def said_by(talk: Talk, text: str) -> list[str]:
    """What a client sees after it said this, with the words the host adds."""
    try:
        answer = await talk.say(text)
    except Exception:  # noqa: BLE001 - as the runner does
        return ["failed: The agent failed."]
    begun: set[str] = set()
    said = [each for each in answer.emissions if not isinstance(each, ToolEvent)]
    lines = [seen(each, begun) for each in said]
    last = said[-1] if said else None
    ended = isinstance(last, Reply) or (
        isinstance(last, StatusUpdate) and last.state is answer.state
    )
    return lines if ended else [*lines, answer.state.word]


def is_named(name: str, *, of: str = "") -> bool:
    """Is it written in code on the page?"""
    return any(re.search(rf"{re.escape(of)}\b{re.escape(name)}\b", code) for code in CODE)


async def public_names_of_turn() -> set[str]:
    """Attributes and methods of a turn."""
    return {name for name in dir(make_turn("x")) if not name.startswith("_")}


class TestCompleteness:
    @pytest.mark.parametrize("name", agents.__all__)
    def test_every_public_name_is_on_the_page(self, name: str) -> None:
        assert is_named(name)

    async def test_everything_of_a_turn_is_on_the_page(self) -> None:
        names = await public_names_of_turn()
        assert {"text", "ask", "memory", "attempt", "cancelled"} <= names
        assert [name for name in sorted(names) if not is_named(name, of="turn.")] == []

    @pytest.mark.parametrize("method", ["artifact", "stream"])
    def test_their_keywords_are_on_the_page(self, method: str) -> None:
        keywords = list(inspect.signature(getattr(Turn, method)).parameters)[2:]
        called = re.findall(rf"`turn\.{method}\((.*?)\)`", PAGE)[0]
        assert all(f"{keyword}=" in called or keyword == "name" for keyword in keywords)

    def test_everything_of_the_class_is_on_the_page(self) -> None:
        names = {name for name in vars(Agent) if not name.startswith("_")}
        assert {"slug", "run", "check", "queue"} <= names
        assert [name for name in sorted(names) if not is_named(name)] == []

    @pytest.mark.parametrize("kind", [agents.Skill, agents.Provider, agents.Extension])
    def test_every_field_of_what_is_declared_is_on_the_page(self, kind: type) -> None:
        called = re.findall(rf"`{kind.__name__}\(([\w, ]+)\)`", PAGE)[0]
        assert called.split(", ") == list(get_type_hints(kind))

    def test_only_settings_that_exist_are_named(self) -> None:
        known = {f"A2A_{name}" for name in names()} | {"A2A_APPS"}
        assert set(re.findall(r"A2A_\w+", PAGE)) <= known

    def test_only_attributes_that_exist_are_named(self) -> None:
        assert set(re.findall(r"\bturn\.(\w+)", PAGE)) <= {*dir(Turn), *vars_of_turn()}


def vars_of_turn() -> set[str]:
    """What a turn has that its class has not."""
    return asyncio.run(public_names_of_turn())


class TestExamples:
    def test_the_page_has_examples_and_every_one_a_conversation(self) -> None:
        assert NAMED[0] == "Orders"
        assert len(set(NAMED)) == len(NAMED) >= 10
        assert [n for n, e in zip(NAMED, EXAMPLES, strict=True) if not e.conversations] == []

    @pytest.mark.parametrize("example", EXAMPLES, ids=NAMED)
    def test_is_in_order(self, example: Example) -> None:
        assert list(example.agent().check()) == []

    @pytest.mark.parametrize("example", EXAMPLES, ids=NAMED)
    async def test_says_what_the_page_shows(self, example: Example) -> None:
        for conversation in example.conversations:
            talk = Talk(example.agent())
            heard: list[str] = []
            for line in conversation.splitlines():
                if line.startswith(">"):
                    heard += [line, *(await said_by(talk, line[1:].strip()))]
            assert heard == conversation.splitlines()

    async def test_the_test_of_the_page_passes(self) -> None:
        (source,) = [s for s in (match[2] for match in BLOCK.finditer(PAGE)) if "def test_" in s]
        greeter = EXAMPLES[NAMED.index("Greeter")]
        space = executed(source, **executed(greeter.source))
        await space["test_asks_for_the_name"]()

    async def test_the_planner_gives_work_to_others(self) -> None:
        source = next(match[2] for match in BLOCK.finditer(CALLS))
        (found,) = re.findall(r"answers=({.*?})", CALLS)
        talk = Talk(executed(source)["Planner"], journal=Journal(answers=json.loads(found)))
        assert await said_by(talk, "Rome") == ["artifact answer: booked", "completed"]

    async def test_an_extension_in_force_changes_the_clock(self) -> None:
        agent = EXAMPLES[NAMED.index("Clock")].agent()
        talk = Talk(agent, extensions=("https://example.com/ext/roman",))
        assert await said_by(talk, "noon?") == ["artifact answer: XII", "completed"]
        card = agent.extended_card({"description": "Short."}, make_turn("x").caller)
        assert card == {"description": "Short. For you also by night."}

    def test_agents_of_the_page_are_hosted_nowhere(self) -> None:
        assert [message for message in checks.check_agents() if "docs" in str(message.obj)] == []
