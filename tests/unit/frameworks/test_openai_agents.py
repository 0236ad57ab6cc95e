"""Runs of the OpenAI Agents SDK without a host: their steps, and the words of their errors."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import msgspec
import openai
import pytest
from agents import (
    Agent,
    AgentOutputSchemaBase,
    GuardrailFunctionOutput,
    InputGuardrail,
    RunConfig,
    RunContextWrapper,
    Runner,
    function_tool,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from a2a_frameworks.openai_agents import OpenAIAgentsAgent
from a2a_frameworks.openai_agents.session import ConversationSession
from a2a_tasks.agents import AgentError, Conversation, Journal, Turn
from a2a_tasks.agents.emission import Chunk, ToolEvent
from tests.support.examples.turns import heard, make_turn, shown_text


def hosting(thing: Agent[Any]) -> OpenAIAgentsAgent:
    """An adapter with this agent."""

    class Hosting(OpenAIAgentsAgent, abstract=True):
        agent = thing

    return Hosting()


def status_error(status: int, code: str = "") -> openai.APIStatusError:
    """An error of the API."""
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://model"))
    return openai.APIStatusError("no", response=response, body={"code": code})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (status_error(429), "The model is busy"),
        (status_error(429, "insufficient_quota"), "The model cannot be used at present."),
        (status_error(400, "context_length_exceeded"), "This conversation has become too long"),
        (status_error(422), "The model refused the request."),
        (openai.OpenAIError("Missing credentials."), "The model cannot be used at present."),
        (openai.APIConnectionError(request=httpx2.Request("POST", "http://model")), "not answer"),
    ],
)
async def test_errors_of_models_become_words_for_people(fault: Exception, said: str) -> None:
    agent = Agent("Helper", model=ScriptedModel([ModelStep.raise_error(fault)]))
    with pytest.raises(AgentError, match=said) as raised:
        await heard(hosting(agent), make_turn("hello"))
    assert raised.value.__cause__ is fault


async def test_steps_are_named_by_their_calls_and_not_taken_again() -> None:
    calls: list[str] = []

    @function_tool
    async def look(name: str) -> str:
        """Look."""
        calls.append(name)
        return name.upper()

    asked = [function_call("look", {"name": name}, call_id=f"call_{name}") for name in "ab"]
    model = ScriptedModel([asked, [assistant_message("AB")]])
    helper = Agent("Helper", model=model, tools=[look])
    journal = Journal()
    said = await heard(hosting(helper), make_turn("hi", journal=journal))
    assert [shown_text(chunk.parts) for chunk in said if isinstance(chunk, Chunk)] == ["AB"]
    names = ["model#1", "model#2", "tool:look:call_a", "tool:look:call_b"]
    assert sorted(journal.results) == names
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    repeated = await heard(hosting(helper), make_turn("hi", journal=again))
    assert {type(one) for one in repeated} == {ToolEvent}, "which the host takes once"
    assert (len(model.calls), sorted(calls)) == (2, ["a", "b"])


async def test_runs_of_one_name_side_by_side_take_steps_of_their_own() -> None:
    begun = asyncio.Barrier(2)

    class Judge(ScriptedModel):
        async def stream_response(self, *about: Any, **more: Any) -> Any:
            await begun.wait()
            async for event in super().stream_response(*about, **more):
                yield event

    def guard(verdict: str) -> InputGuardrail[Any]:
        judge = Agent("Judge", model=Judge([[assistant_message(verdict)]]))

        async def check(_: Any, __: Any, given: Any) -> GuardrailFunctionOutput:
            said = (await Runner.run(judge, given)).final_output
            return GuardrailFunctionOutput(said, tripwire_triggered=said != verdict)

        return InputGuardrail(check)

    model, guards = ScriptedModel([[assistant_message("hi")]]), [guard("fine"), guard("good")]
    helper, journal = Agent("Helper", model=model, input_guardrails=guards), Journal()
    await heard(hosting(helper), make_turn("hi", journal=journal))
    assert sorted(journal.results) == ["Judge#2/model#1", "Judge/model#1", "model#1"]
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    assert await heard(hosting(helper), make_turn("hi", journal=again)) == []


async def test_streamed_runs_of_one_name_side_by_side_take_steps_of_their_own() -> None:
    async def check(_: Any, __: Any, given: Any) -> GuardrailFunctionOutput:
        judges = [
            Agent("Judge", model=ScriptedModel([[assistant_message(verdict)]]))
            for verdict in ("fine", "good")
        ]
        runs = [Runner.run_streamed(judge, given) for judge in judges]
        for run in runs:
            async for _ in run.stream_events():
                pass
        said = [run.final_output for run in runs]
        return GuardrailFunctionOutput(said, tripwire_triggered=said != ["fine", "good"])

    model = ScriptedModel([[assistant_message("hi")]])
    helper, journal = (
        Agent("Helper", model=model, input_guardrails=[InputGuardrail(check)]),
        Journal(),
    )
    await heard(hosting(helper), make_turn("hi", journal=journal))
    assert sorted(journal.results) == ["Judge#2/model#1", "Judge/model#1", "model#1"]


async def test_a_run_that_follows_has_the_same_steps_whichever_run_ended_before_it() -> None:
    asked: list[str] = []
    slow = asyncio.Event()

    class Judge(ScriptedModel):
        async def stream_response(self, *about: Any, **more: Any) -> Any:
            given = str(about) + str(more)
            asked.append(next(word for word in ("slow", "quick", "later") if word in given))
            if asked[-1] == "slow":
                await slow.wait()
            async for event in super().stream_response(*about, **more):
                yield event

    judge = Agent("Judge", model=Judge([[assistant_message("fine")]] * 3))

    async def check(_: Any, __: Any, ___: Any) -> GuardrailFunctionOutput:
        first = asyncio.create_task(Runner.run(judge, "slow"))
        await asyncio.sleep(0)  # it begins
        await Runner.run(judge, "quick")
        await Runner.run(judge, "later")
        slow.set()
        await first
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    model = ScriptedModel([[assistant_message("hi")]])
    helper, journal = (
        Agent("Helper", model=model, input_guardrails=[InputGuardrail(check)]),
        Journal(),
    )
    await heard(hosting(helper), make_turn("hi", journal=journal))
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    assert await heard(hosting(helper), make_turn("hi", journal=again)) == []
    assert sorted(asked) == ["later", "quick", "slow"]


async def test_tools_of_agents_side_by_side_are_called_once_though_their_models_give_one_id() -> (
    None
):
    called = asyncio.Event()
    calls: list[str] = []

    @function_tool
    async def look(name: str) -> str:
        """Look."""
        calls.append(name)
        called.set()
        return name.upper()

    class Late(ScriptedModel):
        async def stream_response(self, *about: Any, **more: Any) -> Any:
            await called.wait()
            async for event in super().stream_response(*about, **more):
                yield event

    def looking(name: str, kind: type[ScriptedModel]) -> Any:
        script = [[function_call("look", {"name": name}, call_id="call_1")]]
        model = kind([*script, [assistant_message(name)]])
        return Agent(name, model=model, tools=[look]).as_tool(name, name)

    asked = [function_call(name, {"input": "go"}, call_id=name) for name in "ab"]
    model = ScriptedModel([asked, [assistant_message("done")]])
    tools, journal = [looking("a", Late), looking("b", ScriptedModel)], Journal()
    helper = Agent("Helper", model=model, tools=tools)
    await heard(hosting(helper), make_turn("hi", journal=journal))
    assert calls == ["b", "a"]
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    await heard(hosting(helper), make_turn("hi", journal=again))
    assert calls == ["b", "a"]


async def test_a_tool_that_takes_too_long_is_told_and_not_called_again() -> None:
    calls: list[str] = []

    @function_tool(timeout=0.01)
    async def wait() -> None:
        """Wait."""
        calls.append("wait")
        await asyncio.Event().wait()

    model = ScriptedModel(
        [[function_call("wait", {}, call_id="c1")], [assistant_message("It was too slow.")]]
    )
    helper = Agent("Helper", model=model, tools=[wait])
    journal, told = Journal(), "Tool 'wait' timed out after 0.01 seconds."
    said = await heard(hosting(helper), make_turn("hi", journal=journal))
    events = [(one.kind, one.about) for one in said if isinstance(one, ToolEvent)]
    assert events[1:] == [("toolResult", {"content": told, "error": True})]
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    repeated = await heard(hosting(helper), make_turn("hi", journal=again))
    assert [one for one in said if isinstance(one, ToolEvent)] == repeated
    assert calls == ["wait"]


class Lines(AgentOutputSchemaBase):
    """A schema that the SDK cannot make of a type."""

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return "lines"

    def json_schema(self) -> dict[str, Any]:
        return {"type": "array"}

    def is_strict_json_schema(self) -> bool:
        return False

    def validate_json(self, json_str: str) -> Any:
        return json_str.split()


async def test_an_output_may_have_a_schema_of_the_authors_own() -> None:
    model = ScriptedModel([[assistant_message("a b")]])
    helper = Agent("Helper", model=model, output_type=Lines())
    (chunk,) = await heard(hosting(helper), make_turn("hi"))
    assert isinstance(chunk, Chunk)
    assert (chunk.parts[0].data, chunk.metadata) == (["a", "b"], {"schema": {"type": "array"}})


async def test_an_agent_may_be_made_for_each_turn_with_a_context_of_its_own() -> None:
    def about(wrapper: RunContextWrapper[str], agent: Any) -> str:
        return wrapper.context

    model = ScriptedModel([[assistant_message("hello")]])

    class Made(OpenAIAgentsAgent, abstract=True):
        async def build(self, turn: Turn) -> Any:
            return Agent("Made", model=model, instructions=about)

        async def make_context(self, turn: Turn) -> str:
            return turn.text.upper()

    await heard(Made(), make_turn("hi"))
    assert model.last_call is not None
    assert model.last_call.system_instructions == "HI"


async def test_runs_outside_of_turns_stay_as_they_are() -> None:
    await heard(
        hosting(Agent("Helper", model=ScriptedModel([[assistant_message("a")]]))), make_turn("hi")
    )
    other = Agent("Other", model=ScriptedModel([[assistant_message("b")]]))
    result = await Runner.run(other, "hi", run_config=RunConfig(tracing_disabled=True))
    assert result.final_output == "b"


async def test_a_session_reads_stored_and_new_items_and_writes_at_the_end() -> None:
    conversation = Conversation(items={"openai_agents": [{"n": 1}, {"n": 2}]})
    session = ConversationSession(make_turn("hi", conversation=conversation), "openai_agents")
    await session.add_items([{"n": 3}])
    assert await session.get_items() == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert await session.get_items(2) == [{"n": 2}, {"n": 3}]
    assert await conversation.items("openai_agents") == [{"n": 1}, {"n": 2}]
    assert [await session.pop_item(), await session.pop_item()] == [{"n": 3}, {"n": 2}]
    await session.add_items([{"n": 4}])
    await session.keep()
    assert await conversation.items("openai_agents") == [{"n": 1}, {"n": 4}]
    await session.clear_session()
    assert await session.pop_item() is None


async def test_an_error_of_a_tool_is_none_of_a_call_beside_it_whose_model_gave_the_same_id() -> (
    None
):
    begun, failed = asyncio.Event(), asyncio.Event()

    def tell(_: Any, fault: Exception) -> str:
        failed.set()
        return str(fault)

    @function_tool(failure_error_function=tell)
    async def look(name: str) -> str:
        """Look."""
        if name == "b":
            begun.set()
            await failed.wait()
            return "B"
        await begun.wait()
        raise ValueError("nothing there")

    def looking(name: str) -> Any:
        asked = [function_call("look", {"name": name}, call_id="call_1")]
        model = ScriptedModel([asked, [assistant_message(name)]])
        return Agent(name, model=model, tools=[look]).as_tool(name, name)

    asked = [function_call(name, {"input": "go"}, call_id=name) for name in "ab"]
    model = ScriptedModel([asked, [assistant_message("done")]])
    helper = Agent("Helper", model=model, tools=[looking("a"), looking("b")])
    said = await heard(hosting(helper), make_turn("hi"))
    results = [
        (one.about["content"], one.about["error"])
        for one in said
        if isinstance(one, ToolEvent) and one.kind == "toolResult" and one.id == "call_1"
    ]
    assert [error for _, error in results] == [True, False]
    assert results[1][0] == "B"
