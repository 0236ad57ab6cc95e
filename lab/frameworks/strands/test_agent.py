"""An agent of Strands in a host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.anthropic import AnthropicModel
from strands.session import FileSessionManager

from a2a_frameworks.strands import StrandsAgent, tools_for
from a2a_frameworks.strands.steps import read_usage
from a2a_tasks.agents import Skill, data, file
from a2a_tasks.testing import Talk, converse
from lab.frameworks.claude import assert_cache_is_counted
from lab.frameworks.contract import Contract
from lab.frameworks.delegation import Delegating
from tests.model_server import ModelServer
from tests.support.frameworks import hosted
from tests.support.model_contract import Traits


class TestStrands(Contract):
    """The contract."""

    folder, slug = "strands", "strands-chat"
    own = Traits(
        told='CONFIRMATION_FAILED: Approve "pay"? Input: {"amount": 7}', works_at_once=False
    )


class City(BaseModel):
    """A city."""

    name: str


@tool(context=True)
def book(city: str, tool_context: ToolContext) -> str:
    """Book a room."""
    nights = tool_context.interrupt("nights", reason="How many nights?")
    turn = tool_context.invocation_state["turn"]
    return f"{nights} nights in {city} for {turn.context_id[:0]}you"


def ask_color(event: BeforeToolCallEvent) -> None:
    """Ask before each call."""
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    asked = event.interrupt("color", reason={"question": "Which color?", "schema": schema})
    event.tool_use["input"]["city"] = asked["color"]


def make(**about: Any) -> Agent:
    """An agent that asks the model of the contract's agent."""
    from lab.frameworks.strands.agents import chat  # noqa: PLC0415 - the model server is up

    return Agent(chat.model, callback_handler=None, retry_strategy=None, **about)


class TestDelegating(Delegating):
    """Agents as tools."""

    def make(self, *slugs: str) -> Any:
        """A supervisor."""
        return make(tools=tools_for(*slugs))


BOOK = 'CALL book {"city": "Bern"}\nSAY booked $RESULT'


@pytest.mark.parametrize(
    ("usage", "figures"),
    [
        # Anthropic and Bedrock: the cache is beside the input
        ((12, 3, 5_015, 5_000, 0), (5_012, 3, 5_000, 0)),
        ((12, 3, 2_015, 500, 1_500), (2_012, 3, 500, 1_500)),
        # AnthropicModel of 1.62 has a total without the cache
        ((12, 3, 15, 5_000, 0), (5_012, 3, 5_000, 0)),
        # OpenAI and Gemini: the cache is a part of the input
        ((5_012, 3, 5_015, 5_000, 0), (5_012, 3, 5_000, 0)),
        ((12, 3, 15, 0, 0), (12, 3, 0, 0)),
    ],
)
def test_tokens_of_a_cache_are_part_of_the_input(
    usage: tuple[int, ...], figures: tuple[int, ...]
) -> None:
    names = ("input", "output", "total")
    given = dict(zip((f"{name}Tokens" for name in names), usage, strict=False))
    given |= {"cacheReadInputTokens": usage[3], "cacheWriteInputTokens": usage[4]}
    assert tuple(read_usage(given).values()) == figures


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_cache_of_claude_is_counted(model: ModelServer, *, streaming: bool) -> None:
    about: Any = {"base_url": model.url.removesuffix("/v1"), "api_key": "none", "max_retries": 0}
    claude = AnthropicModel(client_args=about, model_id="claude-sonnet-4-5", max_tokens=100)
    thing = Agent(claude, callback_handler=None, retry_strategy=None)
    with hosted(thing, streaming=streaming) as agent:
        await assert_cache_is_counted(agent)


async def test_a_tool_asks_by_itself(model: ModelServer) -> None:
    with hosted(make(tools=[book])) as agent:
        asked, done = await converse(agent, BOOK, "three")
    assert (asked.state.word, asked.parts[0].text) == ("input-required", "How many nights?")
    assert done.text == "booked three nights in Bern for you"


async def test_a_hook_asks_with_a_form_of_its_own(model: ModelServer) -> None:
    made = make(tools=[book])
    made.hooks.add_callback(BeforeToolCallEvent, ask_color)
    with hosted(made) as agent:
        talk = Talk(agent)
        asked = await talk.say(BOOK)
        (interrupt,) = asked.parts[1].data["interrupts"]
        again = await talk.say(data({interrupt["id"]: {"color": "red"}}))
        done = await talk.say("2")
    assert asked.parts[0].text == "Which color?"
    assert again.parts[0].text == "How many nights?"
    assert done.text == "booked 2 nights in red for you"


async def test_build_makes_one_for_each_turn(model: ModelServer) -> None:
    class Built(StrandsAgent, abstract=True):
        slug, name, description = "built", "Built", "Is built."
        skills = [Skill("do", "Do", "Does", tags=["test"])]

        async def build(self, turn: Any) -> Agent:
            return make(system_prompt=f"For {turn.text}")

    first, second = await converse(Built(), "SAY I heard $USERS", "SAY I heard $USERS")
    assert (first.text, second.text) == ("I heard 1", "I heard 2")


async def test_the_state_of_the_agent_belongs_to_the_conversation(model: ModelServer) -> None:
    @tool(context=True)
    def count(tool_context: ToolContext) -> int:
        """Count."""
        number = (tool_context.agent.state.get("number") or 0) + 1
        tool_context.agent.state.set("number", number)
        return number

    with hosted(make(tools=[count])) as agent:
        said = await converse(agent, *["CALL count\nSAY $RESULT"] * 2)
        (other,) = await converse(agent, "CALL count\nSAY $RESULT")
    assert [answer.text for answer in (*said, other)] == ["1", "2", "1"]


async def test_a_structured_result_is_data(model: ModelServer) -> None:
    with hosted(make(structured_output_model=City)) as agent:
        (answer,) = await converse(agent, 'CALL City {"name": "Bern"}')
    assert answer.artifacts["result"][0].data == {"name": "Bern"}


async def test_the_model_gets_the_files_of_a_message(model: Any) -> None:
    image, letter = (
        file(b"\x89PNG", "a.png", "image/png"),
        file(b"%PDF", "b.pdf", "application/pdf"),
    )
    with hosted(make()) as agent:
        await converse(agent, ["SAY fine", image, letter])
    assert model.last[-1] == ("user", "SAY fine\n<image_url>\n<file>")


def test_an_agent_with_a_session_manager_is_refused(tmp_path: Path) -> None:
    manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path))
    with hosted(make(session_manager=manager)) as agent:
        (fault,) = [check for check in agent.check() if check.id == "a2a_tasks.E051"]
    assert "has a session manager" in fault.msg
