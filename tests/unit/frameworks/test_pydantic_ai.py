"""The words of a pydantic-ai run on their way to the host, and the words of errors for people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import (
    FunctionToolCallEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelHTTPError,
    ModelNotFoundError,
    ModelRateLimitError,
    UsageLimitExceeded,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from a2a_frameworks.pydantic_ai import PydanticAIAgent
from a2a_frameworks.pydantic_ai.output import ModelOutput
from a2a_tasks.agents import AgentError, Journal, Turn
from a2a_tasks.agents.emission import Chunk, ToolEvent
from tests.support.examples.turns import heard, make_turn, shown_text


async def taken(output: ModelOutput) -> list[Chunk]:
    """What a host takes until the end."""
    said: list[Chunk] = []
    while (one := await output.next()) is not None:
        assert isinstance(one, Chunk)
        said.append(one)
        output.confirm()
    return said


def words(output: ModelOutput, *texts: str) -> None:
    """Let a model speak."""
    output.begin_response()
    output.read_event(PartStartEvent(index=0, part=TextPart(texts[0])))
    for text in texts[1:]:
        output.read_event(PartDeltaEvent(index=0, delta=TextPartDelta(content_delta=text)))


def answer(text: str) -> ModelResponse:
    """An answer of a model."""
    return ModelResponse(parts=[TextPart(text)])


class TestOutput:
    async def test_the_first_word_comes_at_once_and_a_burst_after_it_is_one_piece(self) -> None:
        output = ModelOutput(0)
        host = asyncio.create_task(taken(output))
        words(output, *["x"] * 500)
        await output.end_answer("x" * 500)
        output.finish()
        said = await host
        assert [len(shown_text(chunk.parts)) for chunk in said] == [1, 499]
        assert [(chunk.append, chunk.last) for chunk in said] == [(False, False), (True, True)]

    async def test_an_answer_has_ended_when_the_host_has_all_of_it(self) -> None:
        output = ModelOutput(0)
        words(output, "a", "b")
        ending = asyncio.create_task(output.end_answer("ab"))
        await output.next()
        output.confirm()
        await output.next()
        assert not ending.done()
        output.confirm()
        await ending

    async def test_stored_answers_are_counted_and_not_sent(self) -> None:
        output = ModelOutput(2)
        host = asyncio.create_task(taken(output))
        output.skip_response(answer("stored"))
        words(output, "new")
        await output.end_answer("new")
        output.finish()
        assert [chunk.artifact_id for chunk in await host] == ["answer-4"]

    async def test_a_second_try_of_a_request_replaces_what_the_first_said(self) -> None:
        output = ModelOutput(0)
        host = asyncio.create_task(taken(output))
        words(output, "half")
        await output.end_answer("whole")
        output.finish()
        said = [(shown_text(chunk.parts), chunk.append) for chunk in await host]
        assert said == [("half", False), ("whole", False)]


async def test_a_call_with_a_long_id_is_told_under_a_short_one() -> None:
    output = ModelOutput(0)
    output.read_event(FunctionToolCallEvent(part=ToolCallPart("look", {}, "x" * 1000)))
    output.finish()
    told = await output.next()
    assert isinstance(told, ToolEvent)
    assert (len(told.id), told.about["name"]) == (64, "look")


def failing(fault: Exception) -> PydanticAIAgent:
    """An agent whose model fails."""

    async def fail(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        raise fault
        yield ""

    class Failing(PydanticAIAgent, abstract=True):
        agent = PydanticAgent(FunctionModel(stream_function=fail))

    return Failing()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ModelNotFoundError("m", "no such model"), "The model cannot be used at present."),
        (
            FallbackExceptionGroup(
                "all", [ModelHTTPError(400, "a"), ModelRateLimitError("b", "too many")]
            ),
            "The model is busy. Please try again later.",
        ),
        (
            UsageLimitExceeded("too many"),
            "This message needs more of the model than one message may use.",
        ),
    ],
)
async def test_errors_of_the_framework_become_words_for_people(fault: Any, said: str) -> None:
    with pytest.raises(AgentError, match=said) as raised:
        await heard(failing(fault), make_turn("hello"))
    assert raised.value.__cause__ is not None


async def test_an_agent_may_be_made_for_each_turn_with_dependencies_of_its_own() -> None:
    async def speak(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        yield info.instructions or ""

    class Made(PydanticAIAgent, abstract=True):
        async def build(self, turn: Turn) -> Any:
            made = PydanticAgent(FunctionModel(stream_function=speak), deps_type=str)

            @made.instructions
            def about(context: RunContext[str]) -> str:
                return f"{turn.text} {context.deps}"

            return made

        async def make_deps(self, turn: Turn) -> str:
            return turn.text.upper()

    said = await heard(Made(), make_turn("hi"))
    assert "".join(shown_text(chunk.parts) for chunk in said) == "hi HI"


async def test_steps_are_named_by_their_calls() -> None:
    async def speak(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        yield "hello"

    class Speaking(PydanticAIAgent, abstract=True):
        agent = PydanticAgent(FunctionModel(stream_function=speak))

    journal = Journal()
    await heard(Speaking(), make_turn("hi", journal=journal))
    assert list(journal.results) == ["agent__model.request_stream#1"]
    again = Journal({name: msgspec.json.decode(r) for name, r in journal.results.items()})
    assert await heard(Speaking(), make_turn("hi", journal=again)) == []


async def test_usage_of_agents_that_tools_run_is_counted_once_where_the_framework_counts_it() -> (
    None
):
    async def speak(messages: Any, info: AgentInfo) -> AsyncIterator[Any]:
        if len(messages) == 1:
            yield {n: DeltaToolCall("ask", "{}", tool_call_id=f"c{n}") for n in range(3)}
        else:
            yield "all have answered"

    inner = PydanticAgent(FunctionModel(lambda messages, info: answer("mine is 1")))
    outer = PydanticAgent(FunctionModel(stream_function=speak), deps_type=Turn)

    @outer.tool
    async def ask(context: RunContext[Turn]) -> str:
        return (await inner.run("yours?", usage=context.usage)).output

    class Asking(PydanticAIAgent, abstract=True):
        agent = outer

    async def count(journal: Journal) -> int:
        await heard(Asking(), make_turn("hi", journal=journal))
        return sum(one.requests for one in journal.reports)

    journal = Journal()
    assert await count(journal) == 5
    results = {name: msgspec.json.decode(result) for name, result in journal.results.items()}
    assert await count(Journal(results)) == 0
    del results["agent__model.request_stream#2"]
    assert await count(Journal(results)) == 1
