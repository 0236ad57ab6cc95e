"""`converse` answers as the host would, without a database."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from a2a_tasks.agents import (
    Agent,
    AgentError,
    Conversation,
    Files,
    Journal,
    Secrets,
    Turn,
    data,
    link,
)
from a2a_tasks.protocol.values import Role, TaskState
from a2a_tasks.testing import converse


class Greeter(Agent, abstract=True):
    """Asks for a name, and greets."""

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        if await turn.task is None:
            turn.memory["greeting"] = turn.text
            yield turn.ask("And your name?")
            return
        before = await turn.task
        assert before is not None
        assert before.status.state is TaskState.INPUT_REQUIRED
        yield f"{turn.memory['greeting']}, "
        yield f"{turn.text}!"


async def test_an_answer_to_a_question_belongs_to_the_same_task_and_another_message_to_a_new_one() -> (
    None
):
    asked, answered, again = await converse(Greeter, "Hello", "Ada", "Good day")
    assert (asked.state, asked.text) == (TaskState.INPUT_REQUIRED, "And your name?")
    assert (answered.state, answered.text) == (TaskState.COMPLETED, "Hello, Ada!")
    assert [part.text for part in answered.artifacts["answer"]] == ["Hello, ", "Ada!"]
    assert answered.task_id == asked.task_id != again.task_id
    assert (again.state, again.memory) == (TaskState.INPUT_REQUIRED, {"greeting": "Good day"})


async def test_the_conversation_keeps_values_lists_and_messages_from_task_to_task() -> None:
    class Counter(Agent, abstract=True):
        async def run(self, turn: Turn) -> str:
            known = await turn.conversation.memory.get("count", 0)
            await turn.conversation.memory.set("count", known + 1)
            await turn.conversation.append("said", turn.text)
            if turn.text == "forget":
                await turn.conversation.clear("said")
                await turn.conversation.memory.delete("count")
            said = await turn.conversation.items("said")
            told = [(m.role, len(m.parts)) for m in await turn.conversation.history()]
            assert told[-1][0] is Role.USER
            return f"{known} {said} {len(told)}"

    given = Conversation({"count": 5}, {"said": ["before"]})
    answers = await converse(Counter, "one", "forget", "two", conversation=given)
    assert [answer.text for answer in answers] == [
        "5 ['before', 'one'] 1",
        "6 [] 3",
        "0 ['two'] 5",
    ]


async def test_a_failed_turn_leaves_no_trace_in_memory_and_conversation() -> None:
    class Fragile(Agent, abstract=True):
        async def run(self, turn: Turn) -> AsyncIterator[Any]:
            known = await turn.conversation.memory.get("known")
            await turn.conversation.memory.set("known", turn.text)
            yield f"knew {known}"
            if turn.text == "fail":
                raise AgentError("It is broken.")

    _, failed, after = await converse(Fragile, "first", "fail", "last")
    assert (failed.state, failed.text) == (TaskState.FAILED, "knew firstIt is broken.")
    assert after.text == "knew first"


async def test_mistakes_of_the_agent_are_raised_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(Agent, abstract=True):
        async def run(self, turn: Turn) -> AsyncIterator[Any]:
            match turn.text:
                case "forget":
                    turn.ask("Who?")
                case "number":
                    yield 42
                case "again":
                    yield turn.complete("Done.")
                    raise RuntimeError("never reached: the task has ended")
                case _:
                    turn.memory["it"] = object()

    with caplog.at_level(logging.WARNING):
        (silent,) = await converse(Wrong, "forget")
    assert (silent.state, silent.emissions) == (TaskState.COMPLETED, ())
    assert "without yield turn.ask" in caplog.text
    with pytest.raises(TypeError, match="int cannot be content"):
        await converse(Wrong, "number")
    (ended,) = await converse(Wrong, "again")
    assert (ended.state, ended.text) == (TaskState.COMPLETED, "Done.")
    with pytest.raises(TypeError, match=r"turn\.memory"):
        await converse(Wrong, "memory")


async def test_sleeps_take_no_time_and_steps_are_taken_once() -> None:
    taken = []

    def pay(what: str) -> str:
        taken.append(what)
        return "paid"

    class Sleeper(Agent, abstract=True):
        async def run(self, turn: Turn) -> str:
            await turn.sleep(3_600)
            return str(await turn.step("pay", pay, turn.text))

    (answer,) = await converse(Sleeper, "now")
    assert (answer.text, taken) == ("paid", ["now"])
    before = Journal({"pay": "paid before", "sleep": 0})
    (answer,) = await converse(Sleeper, "again", journal=before)
    assert (answer.text, taken) == ("paid before", ["now"])


async def test_an_agent_in_threads_reads_files_and_secrets() -> None:
    class Reader(Agent, abstract=True):
        def run(self, turn: Turn) -> Iterator[Any]:
            yield turn.secret("key").now() or ""
            yield turn.fetch(turn.parts[1]).now().decode()
            yield data({"answer": turn.parts[0].data})

    url = "https://example.com/a.csv"
    (answer,) = await converse(
        Reader(),
        [data(42), link(url)],
        files=Files({url: b"a,b"}),
        secrets=Secrets({"key": "s3cret"}),
    )
    assert answer.text == "s3creta,b"
    assert answer.parts[-1].data == {"answer": 42}


async def test_a_direct_reply_ends_the_turn() -> None:
    class Direct(Agent, abstract=True):
        async def run(self, turn: Turn) -> AsyncIterator[Any]:
            yield turn.reply("hello")

    (answer,) = await converse(Direct, "x")
    assert (answer.state, answer.text, answer.artifacts) == (TaskState.COMPLETED, "hello", {})
