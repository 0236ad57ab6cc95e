"""The steps of frameworks that have no durability of their own. `make lab-frameworks` tests them with the frameworks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from a2a_frameworks.shared.message_store import FileContent, MessageStore, read_parts
from a2a_frameworks.shared.model_call import ModelSilent
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps, ToolFailed
from a2a_frameworks.shared.output import OutputQueue
from a2a_tasks.agents import AgentError, Conversation, Journal, file
from a2a_tasks.agents.emission import Chunk, ToolEvent
from tests.support.examples.turns import make_turn

Work = Callable[[ModelSteps], Awaitable[Any]]


async def said_in(
    work: Work, journal: Journal | None = None, known: Mapping[str, Any] | None = None
) -> list[str]:
    """What a host hears of a run, a line each."""
    output, lines = OutputQueue(0), list[str]()

    async def hear() -> None:
        while (one := await output.next()) is not None:
            match one:
                case Chunk():
                    lines.append(f"{one.artifact_id}: {one.parts[0].text}")
                case ToolEvent():
                    lines.append(f"{one.kind} {one.id}: {one.about}")
            output.confirm()

    turn = make_turn("hi", journal=journal or Journal())
    hearing = asyncio.create_task(hear())
    try:
        await work(ModelSteps(turn, output, 0.2, known))
    finally:
        output.finish()
        await hearing
    return lines


def saying(text: str, asked: list[str] | None = None) -> Callable[[], Awaitable[ModelAnswer]]:
    """A model that says a text."""

    async def ask() -> ModelAnswer:
        if asked is not None:
            asked.append(text)
        return ModelAnswer({"said": text}, text, "m")

    return ask


def kept(journal: Journal) -> Journal:
    """The journal of the next attempt."""
    return Journal({name: json.loads(result) for name, result in journal.results.items()})


async def test_a_replay_asks_nobody_says_nothing_and_counts_the_artifacts() -> None:
    journal, asked = Journal(), list[str]()
    answers: list[Any] = []

    async def one(steps: ModelSteps) -> None:
        answers.append(await steps.ask_model(saying("one", asked)))

    async def both(steps: ModelSteps) -> None:
        await one(steps)
        await steps.ask_model(saying("two", asked))

    assert await said_in(one, journal) == ["answer: one"]
    assert await said_in(both, kept(journal)) == ["answer-2: two"]
    assert (asked, answers) == (["one", "two"], [{"said": "one"}] * 2)


async def test_results_of_an_earlier_turn_are_known_and_their_artifacts_are_counted_already() -> (
    None
):
    taken: dict[str, Any] = {}

    async def work(steps: ModelSteps) -> None:
        await steps.ask_model(saying("one"))
        taken.update(steps.taken)

    await said_in(work)
    assert await said_in(work, known=taken) == []


async def test_agents_side_by_side_speak_one_after_the_other() -> None:
    async def work(steps: ModelSteps) -> None:
        ways = [steps.ask_model(saying(name), place=f"{name}/") for name in ("a", "b")]
        await asyncio.gather(*ways)

    assert await said_in(work) == ["answer: a", "answer-2: b"]


async def test_a_silent_model_is_given_up() -> None:
    async def never() -> ModelAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(ModelSilent, match=r"silent for 0\.2 s"):
        await said_in(lambda steps: steps.ask_model(never))


async def test_a_tool_that_failed_is_not_called_again() -> None:
    journal, calls = Journal(), list[int]()

    async def fail() -> Any:
        calls.append(1)
        raise KeyError("no")

    async def work(steps: ModelSteps) -> None:
        await steps.call_tool("1", "t", {"a": 1}, fail)

    with pytest.raises(KeyError):
        await said_in(work, journal)
    with pytest.raises(ToolFailed, match="no"):
        await said_in(work, kept(journal))
    assert calls == [1]


async def test_a_tool_that_asks_is_called_again() -> None:
    class Asks(Exception):
        pass

    journal, waits = Journal(), [True]

    async def call() -> Any:
        if waits.pop():
            raise Asks
        return 7

    async def work(steps: ModelSteps) -> None:
        await steps.call_tool("1", "t", {}, call, show=str, signals=(Asks,))

    with pytest.raises(Asks):
        await said_in(work, journal)
    waits.append(False)
    assert (await said_in(work, kept(journal)))[1:] == [
        "toolResult 1: {'content': '7', 'error': False}"
    ]


class TestMessages:
    async def test_those_of_a_task_that_waits_join_the_conversation_with_its_answer(self) -> None:
        conversation, memory = Conversation(None, {"k": [1]}), dict[str, Any]()
        store = MessageStore(make_turn("hi", memory=memory, conversation=conversation), "k")
        assert await store.read() == [1]
        store.wait([2], asked=["x"])
        assert memory == {"k": {"messages": [2], "asked": ["x"]}}
        answered = MessageStore(make_turn("hi", memory=memory, conversation=conversation), "k")
        assert await answered.read() == [1, 2]
        await answered.append([3])
        assert (memory, await conversation.items("k")) == ({}, [1, 2, 3])

    async def test_a_conversation_that_is_full_says_so(self) -> None:
        store = MessageStore(make_turn("hi"), "k")
        with pytest.raises(AgentError, match="too long"):
            await store.append(["x" * 2**20] * 20)

    async def test_parts_are_texts_and_files(self) -> None:
        turn = make_turn("hi", file(b"\x00", "a.bin", "a/b"))
        assert await read_parts(turn) == ["hi", FileContent(b"\x00", "a/b", "a.bin")]
