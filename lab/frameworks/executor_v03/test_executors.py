"""Executors for a2a-sdk 0.3 in a host: what they are given, and what clients see of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from a2a.server.agent_execution import RequestContext
from a2a.server.events import EventQueue
from a2a.types import (
    Artifact,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    InvalidParamsError,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task
from a2a.utils.errors import ServerError

from a2a_frameworks import host
from a2a_project.operations import TABLE
from a2a_tasks.agents import data, file, registry
from a2a_tasks.protocol import values
from a2a_tasks.testing import Talk, converse
from lab.frameworks.executor_v03 import agents  # noqa: F401 - hosts them
from tests.support.execution.host import Client, hosting
from tests.support.execution.waiting import until
from tests.support.executors import Scripted, Work
from tests.support.frameworks import SKILLS, hosted, parts_of, seen, text_of


def status(state: TaskState, text: str = "", **about: Any) -> TaskStatusUpdateEvent:
    """An event about the status."""
    message = new_agent_text_message(text) if text else None
    return TaskStatusUpdateEvent(
        task_id="t",
        context_id="c",
        final=False,
        status=TaskStatus(state=state, message=message),
        **about,
    )


async def said_by(work: Work, text: str = "hello") -> list[str]:
    """What a client sees of an executor."""
    with hosted(Scripted(work)) as agent:
        async with hosting():
            return await seen(Client(agent), text)


async def test_words_of_an_error_of_the_protocol_reach_the_client() -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        raise ServerError(error=InvalidParamsError(message="The amount is missing"))

    assert await said_by(work) == ["working", "failed: The amount is missing"]


async def test_the_executor_sees_how_the_client_wants_its_answer() -> None:
    seen_: list[Any] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        seen_.append(context.configuration)

    with hosted(Scripted(work)) as agent:
        async with hosting():
            await Client(agent).send("x", history_length=2)
    (configuration,) = seen_
    assert (configuration.blocking, configuration.history_length) == (True, 2)


async def test_one_that_answers_with_a_message_does_so_without_a_task() -> None:
    client = Client(registry.find_hosted("hello-03"))
    async with hosting():
        answer = await TABLE["SendMessage"](client.request("hi"), client.call())
    assert isinstance(answer, values.Raw)
    assert parts_of(msgspec.json.decode(answer)) == "Hello, world! You said: hi"


async def test_one_asks_and_streams_in_the_next_turn() -> None:
    client = Client(registry.find_hosted("poem-03"))
    async with hosting():
        asked = await client.send("write")
        assert asked.status.state.word == "input-required"
        assert await seen(client, "rose", task_id=asked.id) == [
            "artifact poem: rose is a rose",
            "artifact poem +  is a rose. (last)",
            "completed",
        ]


async def test_its_own_task_is_swallowed_and_the_task_with_history_is_given_back() -> None:
    given: list[RequestContext] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        given.append(context)
        if context.current_task is None:
            await queue.enqueue_event(new_task(context.message))
            artifact = Artifact(artifact_id="a", parts=[Part(root=TextPart(text="draft"))])
            await queue.enqueue_event(
                TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact)
            )
            await queue.enqueue_event(status(TaskState.input_required, "More?"))

    with hosted(Scripted(work)) as agent:
        async with hosting():
            client = Client(agent)
            asked = await client.send("one")
            done = await client.send("two", task_id=asked.id)
    assert done.status.state.word == "completed"
    first, second = given
    assert first.current_task is None
    task = second.current_task
    assert (task.id, task.context_id, task.status.state) == (
        asked.id,
        asked.context_id,
        TaskState.input_required,
    )
    said = [(one.role, one.parts[0].root.text) for one in task.history]
    assert said[0] == (Role.user, "one")
    assert task.status.message.parts[0].root.text == "More?"
    assert task.artifacts[0].parts[0].root.text == "draft"
    assert second.get_user_input() == "two"


async def test_parts_of_every_kind_come_and_go() -> None:
    given: list[Any] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        given.extend(part.root for part in context.message.parts)
        parts = [
            *context.message.parts,
            Part(root=FilePart(file=FileWithUri(uri="https://x.test/a", mime_type="a/b"))),
        ]
        artifact = Artifact(
            artifact_id="a", name="n", parts=parts, metadata={"k": 1}, extensions=["https://e"]
        )
        await queue.enqueue_event(
            TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact)
        )

    with hosted(Scripted(work)) as agent:
        (answer,) = await converse(
            agent, ["words", data({"n": [1, 0.5]}), file(b"\x00\xff", "x.bin", "b/c")]
        )
    kinds = [type(part) for part in given]
    assert kinds == [TextPart, DataPart, FilePart]
    assert isinstance(given[2].file, FileWithBytes)
    (chunk,) = answer.emissions
    assert (chunk.name, chunk.metadata, chunk.extensions) == ("n", {"k": 1}, ("https://e",))
    words, numbers, raw, url = chunk.parts
    assert (words.text, numbers.data) == ("words", {"n": [1, 0.5]})
    assert (raw.raw, raw.filename, raw.media_type) == ("AP8=", "x.bin", "b/c")
    assert (url.url, url.media_type) == ("https://x.test/a", "a/b")


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (TaskState.failed, "failed"),
        (TaskState.rejected, "rejected"),
        (TaskState.canceled, "canceled"),
    ],
)
async def test_it_ends_as_the_executor_says(state: TaskState, word: str) -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        await queue.enqueue_event(status(TaskState.submitted))
        await queue.enqueue_event(status(state, "So.", metadata={"tokens": 7}))

    assert await said_by(work) == ["working", f"{word}: So."]


async def test_one_that_raises_fails_in_the_words_of_the_host() -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        raise KeyError("secret")

    assert await said_by(work) == ["working", "failed: The agent failed."]


async def test_something_else_is_no_event() -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        with pytest.raises(TypeError, match="str is no event"):
            await queue.enqueue_event("text")

    assert await said_by(work) == ["working", "completed"]


async def test_a_task_that_has_ended_already_ends_the_task() -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        ended = TaskStatus(state=TaskState.completed, message=new_agent_text_message("There."))
        await queue.enqueue_event(Task(id="t", context_id="c", status=ended))

    assert await said_by(work) == ["working", "completed: There."]


async def test_a_message_after_a_task_is_a_closing_word() -> None:
    async def work(context: RequestContext, queue: EventQueue) -> None:
        assert isinstance(context.message, Message)
        await queue.enqueue_event(new_task(context.message))
        await queue.enqueue_event(new_agent_text_message("Bye."))

    assert await said_by(work) == ["working", "completed: Bye."]


async def test_cancelling_stops_execute_and_calls_cancel_with_the_task() -> None:
    steps: list[str] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        try:
            steps.append("begun")
            await asyncio.Event().wait()
        finally:
            steps.append("stopped")

    async def cancel(context: RequestContext, queue: EventQueue) -> None:
        steps.append(context.current_task.status.state.value)

    with hosted(Scripted(work, cancel)) as agent:
        async with hosting():
            client = Client(agent)
            task = await client.begin()
            await until(lambda: steps)
            ended = await client.cancel(task.id)
            await until(lambda: len(steps) == 3)
    assert ended.status.state.word == "canceled"
    assert steps == ["begun", "stopped", "working"]


async def test_the_context_of_the_call_names_the_caller() -> None:
    given: list[Any] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        given.append(context.call_context)

    await said_by(work)
    assert given[0].user.user_name == "user:alice"
    assert given[0].user.is_authenticated


async def test_data_that_are_no_object_are_wrapped() -> None:
    given: list[Any] = []

    async def work(context: RequestContext, queue: EventQueue) -> None:
        given.extend(part.root.data for part in context.message.parts)

    with hosted(Scripted(work)) as agent:
        await converse(agent, [data([1, 2])])
    assert given == [{"value": [1, 2]}]


async def test_two_messages_of_a_talk_are_two_tasks() -> None:
    talk = Talk(registry.find_hosted("poem-03"))
    asked = await talk.say("x")
    answered = await talk.say("tree")
    assert asked.text == "A poem about what?"
    assert answered.text == "tree is a tree is a tree."


def test_the_class_of_an_executor_is_no_executor() -> None:
    with pytest.raises(TypeError, match="the class Scripted cannot be hosted"):
        host(Scripted, slug="wrong", skills=SKILLS)


async def test_an_answer_of_a_task_is_kept() -> None:
    client = Client(registry.find_hosted("poem-03"))
    async with hosting():
        asked = await client.send("write")
        done = await client.send("sea", task_id=asked.id)
    assert text_of(done) == ["sea is a sea is a sea."]
