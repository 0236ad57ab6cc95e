"""Agents of the Agent Development Kit in a host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent, SequentialAgent
from google.adk.events import Event
from google.adk.tools import LongRunningFunctionTool, ToolContext
from google.genai import types

from a2a_frameworks.adk import tools_for
from a2a_tasks.agents import Journal, data, file
from a2a_tasks.testing import Talk, converse
from lab.frameworks.contract import Contract
from lab.frameworks.delegation import Delegating
from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import hosted, status_text
from tests.support.model_contract import Traits


class TestAdk(Contract):
    """The contract."""

    folder, slug = "adk", "adk-chat"
    own = Traits(told='{"error": "This tool call is rejected."}')

    def write(self, result: Any) -> str:
        """Return the result of a tool as the model gets it."""
        return json.dumps({"result": result})


def make(name: str = "other", **about: Any) -> LlmAgent:
    """An agent that asks the model of the contract's agent."""
    from lab.frameworks.adk.agents import chat  # noqa: PLC0415 - the model server is up

    return LlmAgent(name=name, model=chat.model, **about)


class TestDelegating(Delegating):
    """Agents as tools."""

    def make(self, *slugs: str) -> Any:
        """A supervisor."""
        return make(tools=tools_for(*slugs))


def order(what: str) -> dict[str, str]:
    """Order something."""
    return {"status": "pending"}


def count(tool_context: ToolContext) -> int:
    """Count."""
    tool_context.state["number"] = tool_context.state.get("number", 0) + 1
    return int(tool_context.state["number"])


def refuse(a: int) -> int:
    """Refuse."""
    raise ValueError(f"not {a}")


def confirm(tool_context: ToolContext) -> dict[str, bool]:
    """Ask the client first."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation()
        return {"waits": True}
    return {"confirmed": tool_context.tool_confirmation.confirmed}


COUNT = "CALL count\nSAY $RESULT"


class Parrot(BaseAgent):
    """An agent without a model."""

    async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
        content = types.Content(role="model", parts=[types.Part(text="squawk")])
        yield Event(author=self.name, content=content)


async def test_the_client_gives_the_result_of_a_long_running_tool(model: ModelServer) -> None:
    with hosted(make(tools=[LongRunningFunctionTool(order)])) as agent:
        talk = Talk(agent)
        asked = await talk.say('CALL order {"what": "tea"}\nSAY got $RESULT')
        *_, question, about, _ = asked.parts
        (call,) = about.data["calls"]
        done = await talk.say(data({call["id"]: {"status": "here"}}))
    assert asked.state.word == "input-required"
    assert question.text == 'Please run order(what="tea") and answer with its result.'
    assert done.text == 'got {"status": "here"}'


@pytest.mark.parametrize("answer", [{"status": "pending"}, None])
async def test_a_long_running_tool_is_called_once_in_all_attempts(
    model: ModelServer, answer: Any
) -> None:
    opened: list[str] = []

    def open_ticket(what: str) -> Any:
        """Open a ticket."""
        opened.append(what)
        return answer

    journal = Journal()
    with hosted(make(tools=[LongRunningFunctionTool(open_ticket)])) as agent:
        script = 'CALL open_ticket {"what": "broken"}\nSAY got $RESULT'
        (first,) = await converse(agent, script, journal=journal)
        results = {name: json.loads(text) for name, text in journal.results.items()}
        (again,) = await converse(agent, script, journal=Journal(results), attempt=2)
    assert opened == ["broken"]
    assert first.state is again.state


async def test_a_plain_function_does_not_stop_the_event_loop(model: ModelServer) -> None:
    loop, word = asyncio.get_running_loop(), ContextVar("word", default="")

    def wait() -> str:
        """Wait for the event loop, which must be at work meanwhile."""
        return asyncio.run_coroutine_threadsafe(answer(), loop).result(10) + word.get()

    async def answer() -> str:
        return "the loop goes on"

    word.set(", with the context")
    with hosted(make(tools=[wait])) as agent:
        (said,) = await converse(agent, "CALL wait\nSAY $RESULT")
    assert "the loop goes on, with the context" in said.text


async def test_the_state_of_the_session_belongs_to_the_conversation(model: ModelServer) -> None:
    with hosted(make(tools=[count])) as agent:
        said = await converse(agent, COUNT, COUNT)
        (other,) = await converse(agent, COUNT)
    results = [json.loads(answer.text)["result"] for answer in (*said, other)]
    assert results == [1, 2, 1]


async def test_another_attempt_has_the_changes_of_the_state(model: ModelServer) -> None:
    journal = Journal()
    with hosted(make(tools=[count])) as agent:
        (first,) = await converse(agent, COUNT, journal=journal)
        results = {name: json.loads(text) for name, text in journal.results.items()}
        talk = Talk(agent, journal=Journal(results), attempt=2)
        await talk.say(COUNT)
        second = await talk.say(COUNT)
    assert json.loads(first.text)["result"] == 1
    assert json.loads(second.text)["result"] == 2
    assert len(model.exchanges) == 4


async def test_agents_one_after_the_other_and_one_without_a_model(model: ModelServer) -> None:
    team = SequentialAgent(name="team", sub_agents=[make("a"), Parrot(name="p"), make("b")])
    with hosted(team) as agent:
        (answer,) = await converse(agent, "SAY hello")
    texts = ["".join(str(part.text) for part in parts) for parts in answer.artifacts.values()]
    assert texts == ["hello", "squawk", "hello"]


async def test_the_agent_of_the_app_does_not_change(model: ModelServer) -> None:
    made = make(tools=[count])
    model_before = made.model
    with hosted(made) as agent:
        await converse(agent, [COUNT, file(b"abc", "a.txt", "text/plain")])
    assert made.model is model_before
    assert made.before_tool_callback is None


async def test_agents_side_by_side_speak_one_after_the_other(model: ModelServer) -> None:
    with hosted(ParallelAgent(name="team", sub_agents=[make("a"), make("b")])) as agent:
        (answer,) = await converse(agent, "SAY hello")
    texts = ["".join(str(part.text) for part in parts) for parts in answer.artifacts.values()]
    assert texts == ["hello", "hello"]


async def test_a_tool_asks_for_its_confirmation_by_itself(model: ModelServer) -> None:
    with hosted(make(tools=[confirm])) as agent:
        asked, done = await converse(agent, "CALL confirm\nSAY $RESULT", "yes")
    assert asked.state.word == "input-required"
    assert json.loads(done.text) == {"confirmed": True}


async def test_too_many_requests_fail_the_task(model: ModelServer) -> None:
    with hosted(make(tools=[count]), max_llm_calls=1) as agent:
        async with hosting():
            task = await Client(agent).send(COUNT)
    words = "This message needs more of the model than one message may use."
    assert (task.status.state.word, status_text(task)) == ("failed", words)


async def test_a_tool_that_raises_fails_the_task_and_no_callback_is_asked(
    model: ModelServer,
) -> None:
    called: list[Any] = []
    made = make(tools=[refuse], on_tool_error_callback=lambda **about: called.append(about))
    with hosted(made) as agent:
        async with hosting():
            task = await Client(agent).send('CALL refuse {"a": 1}\nSAY $RESULT')
    assert (task.status.state.word, called) == ("failed", [])
