"""Executors of the a2a-sdk in a host: real classes, unchanged, and what clients see of them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import gc
import logging
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from a2a.compat.v0_3 import types as of_03
from a2a.helpers import (
    new_artifact,
    new_data_part,
    new_raw_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
    new_url_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    UnsupportedOperationError,
)

from a2a_frameworks.executor import ExecutorAgent
from a2a_frameworks.executor.call import ROOM
from a2a_project.operations import TABLE
from a2a_tasks.agents import Agent, Turn, file
from a2a_tasks.caller import Caller
from a2a_tasks.execution.agent_call import drive
from a2a_tasks.models import PARKED, CancelNotice, Run
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol import values
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.examples.turns import make_turn
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    not_carried,
    take_away,
)
from tests.support.execution.waiting import until
from tests.support.executors import Scripted, Work
from tests.support.frameworks import hosted, parts_of, seen, status_text
from tests.support.thorough import examples

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


async def _has(found: list[Any], count: int) -> bool:
    return len(found) >= count


class HelloWorld(AgentExecutor):
    """The executor of the SDK's first tutorial, written anew."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Greet."""
        task = context.current_task or new_task_from_user_message(asked(context))
        if not context.current_task:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(updater.new_agent_message([new_text_part("Thinking ...")]))
        await updater.add_artifact(
            [new_text_part(f"Hello, {context.get_user_input()}!")], artifact_id="greeting"
        )
        await updater.complete(new_text_message("Done."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Refuse."""
        raise NotImplementedError("cancel not supported")


def asked(context: RequestContext) -> Message:
    """The message of the request."""
    assert context.message is not None
    return context.message


def updater(context: RequestContext, queue: EventQueue) -> TaskUpdater:
    """The SDK's helper for the task."""
    assert context.task_id
    assert context.context_id
    return TaskUpdater(queue, context.task_id, context.context_id)


def status(state: Any, text: str = "", **about: Any) -> TaskStatusUpdateEvent:
    """An event that is about the status."""
    message = new_text_message(text) if text else None
    return TaskStatusUpdateEvent(status=TaskStatus(state=state, message=message), **about)


def piece(text: str, *, append: bool = True, last: bool = False, **about: Any) -> Any:
    """A piece of artifact `a`."""
    artifact = Artifact(artifact_id="a", parts=[Part(text=text)], **about)
    return TaskArtifactUpdateEvent(artifact=artifact, append=append, last_chunk=last)


def saying(*events: Any) -> Scripted:
    """An executor that enqueues these."""

    async def work(context: RequestContext, queue: EventQueue) -> None:
        for event in events:
            await queue.enqueue_event(event)

    return Scripted(work)


async def said_by(executor: AgentExecutor, **attributes: Any) -> list[str]:
    """What a client sees of an executor."""
    with hosted(executor, **attributes) as agent:
        async with hosting():
            return await seen(Client(agent))


async def trace() -> str:
    """The trace of the newest run."""
    return (await run_in_thread(Run.objects.latest, "pk")).error


class TestWhatItSays:
    async def test_an_unchanged_executor_streams(self) -> None:
        with hosted(HelloWorld()) as agent:
            async with hosting():
                assert await seen(Client(agent), "World") == [
                    "working",
                    "working: Thinking ...",
                    "artifact greeting: Hello, World!",
                    "completed: Done.",
                ]

    async def test_its_own_first_task_is_swallowed_and_its_artifacts_are_kept(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            task = new_task_from_user_message(asked(context))
            task.artifacts.append(new_artifact([Part(text="first")], "n", artifact_id="a"))
            await queue.enqueue_event(task)
            await queue.enqueue_event(task)

        assert await said_by(Scripted(work)) == ["working", "artifact a: first (last)", "completed"]

    async def test_a_task_that_has_ended_already_ends_the_task(self) -> None:
        task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED))
        task.artifacts.append(new_artifact([Part(text="all")], "n", artifact_id="a"))
        task.status.message.CopyFrom(new_text_message("There."))
        said = await said_by(saying(task))
        assert said == ["working", "artifact a: all (last)", "completed: There."]

    async def test_pieces_keep_ids_names_metadata_and_extensions(self) -> None:
        about: dict[str, Any] = {
            "name": "n",
            "description": "d",
            "extensions": ["https://e"],
            "metadata": {"k": 1},
        }
        events = [piece("1", append=False, **about), piece("2"), piece("3", last=True)]
        with hosted(saying(*events)) as agent:
            async with hosting():
                client = Client(agent)
                assert await seen(client) == [
                    "working",
                    "artifact a: 1",
                    "artifact a + 2",
                    "artifact a + 3 (last)",
                    "completed",
                ]
                task = await client.send()
        (artifact,) = map(msgspec.json.decode, task.artifacts or ())
        texts = [part["text"] for part in artifact.pop("parts")]
        assert texts == ["1", "2", "3"]
        assert artifact == {"artifactId": "a", **about}

    async def test_a_piece_without_parts_closes_nothing_and_fails_nothing(self) -> None:
        end = TaskArtifactUpdateEvent(artifact=Artifact(artifact_id="a"), last_chunk=True)
        said = await said_by(saying(piece("1", append=False), end))
        assert said == ["working", "artifact a: 1", "completed"]

    async def test_submitted_after_working_is_dropped(self) -> None:
        states = (TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_SUBMITTED)
        said = await said_by(saying(*map(status, states), status(states[1], "Soon.")))
        assert said == ["working", "working: Soon.", "completed"]

    async def test_it_ends_as_the_executor_says(self) -> None:
        for state in (TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_REJECTED):
            word = TaskState.Name(state).removeprefix("TASK_STATE_").lower()
            assert await said_by(saying(status(state, "So."))) == ["working", f"{word}: So."]

    async def test_a_task_that_it_cancels_itself_is_canceled(self) -> None:
        said = await said_by(saying(status(TaskState.TASK_STATE_CANCELED, "As you wish.")))
        assert said == ["working", "canceled: As you wish."]

    async def test_metadata_of_a_status_and_its_message_are_kept(self) -> None:
        event = status(TaskState.TASK_STATE_COMPLETED, "Done.", metadata={"tokens": 7})
        event.status.message.metadata.update({"model": "m"})
        event.status.message.extensions.append("https://e")
        with hosted(saying(event)) as agent:
            async with hosting():
                task = await Client(agent).send()
        message = msgspec.json.decode(task.status.message or b"{}")
        assert message["metadata"] == {"tokens": 7, "model": "m"}
        assert message["extensions"] == ["https://e"]

    async def test_numbers_of_data_stay_whole(self) -> None:
        artifact = Artifact(artifact_id="a", parts=list(map(new_data_part, [{"n": 7}, [1, 0.5]])))
        said = await said_by(saying(TaskArtifactUpdateEvent(artifact=artifact)))
        assert said[1] == "artifact a: {'n': 7} [1, 0.5]"

    async def test_more_parts_than_a_client_may_send_are_allowed(self) -> None:
        parts = [Part(text=str(n)) for n in range(500)]
        artifact = Artifact(artifact_id="a", parts=parts)
        said = await said_by(saying(TaskArtifactUpdateEvent(artifact=artifact)))
        assert said[1].endswith("498 499")


class TestMessages:
    async def test_a_message_after_a_task_is_a_closing_word(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            await queue.enqueue_event(new_task_from_user_message(asked(context)))
            await queue.enqueue_event(new_text_message("Bye."))

        for replies in (False, True):
            said = await said_by(Scripted(work), replies_directly=replies)
            assert said == ["working", "completed: Bye."]

    async def test_a_message_alone_is_a_direct_answer(self) -> None:
        with hosted(saying(new_text_message("Hi.")), replies_directly=True) as agent:
            async with hosting():
                client = Client(agent)
                answer = await TABLE["SendMessage"](client.request("hello"), client.call())
        assert isinstance(answer, values.Raw)
        assert parts_of(msgspec.json.decode(answer)) == "Hi."

    async def test_a_message_alone_completes_the_task_of_an_agent_that_only_has_tasks(self) -> None:
        assert await said_by(saying(new_text_message("Hi."))) == ["working", "completed: Hi."]


class TestItsEnd:
    async def test_without_a_last_state_the_host_completes(self) -> None:
        assert await said_by(saying(piece("x", append=False))) == [
            "working",
            "artifact a: x",
            "completed",
        ]

    async def test_one_that_raises_fails_in_the_words_of_the_host(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            await queue.enqueue_event(piece("x", append=False))
            raise KeyError("secret")

        said = await said_by(Scripted(work))
        assert said == ["working", "artifact a: x", "failed: The agent failed."]
        assert "KeyError: 'secret'" in await trace()

    @pytest.mark.parametrize(
        "fault",
        [InvalidParamsError, UnsupportedOperationError, ContentTypeNotSupportedError],
    )
    async def test_words_of_an_error_of_the_protocol_reach_the_client(self, fault: Any) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            raise fault(message="The amount is missing")

        assert await said_by(Scripted(work)) == ["working", "failed: The amount is missing"]
        assert fault.__name__ in await trace()

    async def test_one_that_ends_the_process_ends_only_its_run(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            raise SystemExit(1)

        assert await said_by(Scripted(work)) == ["working", "failed: The agent failed."]
        assert "SystemExit" in await trace()

    async def test_cleaning_up_after_the_last_event_is_waited_for(self) -> None:
        steps: list[str] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            await updater(context, queue).complete()
            await asyncio.to_thread(steps.append, "closed")
            await queue.enqueue_event(piece("too late", append=False))
            steps.append("done")

        assert await said_by(Scripted(work)) == ["working", "completed"]
        assert steps == ["closed", "done"]

    async def test_one_that_hangs_while_it_cleans_up_is_cancelled(self) -> None:
        steps: list[str] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            await updater(context, queue).complete()
            try:
                await asyncio.Event().wait()
            finally:
                steps.append("cancelled")

        assert await said_by(Scripted(work), cleanup_seconds=0.1) == ["working", "completed"]
        assert steps == ["cancelled"]

    async def test_one_that_goes_on_enqueueing_without_end_is_cancelled(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            await updater(context, queue).complete()
            while True:
                await queue.enqueue_event(piece("x"))

        assert await said_by(Scripted(work), cleanup_seconds=0.1) == ["working", "completed"]

    async def test_one_that_cannot_be_cancelled_is_left(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        go = asyncio.Event()

        async def work(context: RequestContext, queue: EventQueue) -> None:
            await updater(context, queue).complete()
            while not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    continue

        said = await said_by(Scripted(work), cleanup_seconds=0.1, cancel_seconds=0.1)
        go.set()
        assert said == ["working", "completed"]
        assert "the executor does not end" in caplog.text

    async def test_what_it_raises_after_its_last_event_is_only_logged(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            await updater(context, queue).complete()
            raise KeyError("too late")

        assert await said_by(Scripted(work)) == ["working", "completed"]
        assert "raised after the end" in caplog.text

    async def test_events_of_work_that_it_left_behind_are_dropped_with_one_line(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        left: list[asyncio.Task[None]] = []
        go = asyncio.Event()

        async def work(context: RequestContext, queue: EventQueue) -> None:
            async def later() -> None:
                await go.wait()
                for _ in range(100):
                    await queue.enqueue_event(piece("late"))

            left.append(asyncio.create_task(later()))
            await updater(context, queue).complete()

        assert await said_by(Scripted(work)) == ["working", "completed"]
        go.set()
        await left[0]
        assert caplog.text.count("after the end of the turn was dropped") == 1


class TestTurns:
    async def test_the_second_turn_gets_the_task_as_the_sdk_would_give_it(self) -> None:
        tasks: list[Task | None] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            tasks.append(context.current_task)
            tell = updater(context, queue)
            if context.current_task:
                await tell.complete(new_text_message(f"Hello, {context.get_user_input()}."))
                return
            await tell.add_artifact([Part(text="x")], artifact_id="a", name="n")
            await tell.requires_input(new_text_message("Your name?"))

        with hosted(Scripted(work)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("hello")
                assert (task.status.state.word, status_text(task)) == (
                    "input-required",
                    "Your name?",
                )
                task = await client.send("Alice", task_id=task.id)
        assert status_text(task) == "Hello, Alice."
        first, second = tasks
        assert first is None
        assert second is not None
        assert (second.id, second.context_id) == (task.id, task.context_id)
        assert second.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert second.status.message.parts[0].text == "Your name?"
        assert [(m.role, m.parts[0].text) for m in second.history] == [(Role.ROLE_USER, "hello")]
        assert [(a.artifact_id, a.name, a.parts[0].text) for a in second.artifacts] == [
            ("a", "n", "x")
        ]

    async def test_a_credential_may_be_asked_for(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            tell = updater(context, queue)
            if context.current_task:
                before = TaskState.Name(context.current_task.status.state)
                await tell.complete(new_text_message(before))
            else:
                await tell.requires_auth(new_text_message("Sign in."))

        with hosted(Scripted(work)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send()
                assert (task.status.state.word, status_text(task)) == ("auth-required", "Sign in.")
                task = await client.send("done", task_id=task.id)
        assert status_text(task) == "TASK_STATE_AUTH_REQUIRED"

    async def test_it_may_go_on_by_itself_once_the_credential_is_there(self) -> None:
        states = ("AUTH_REQUIRED", "WORKING", "COMPLETED")
        events = [status(TaskState.Value(f"TASK_STATE_{state}")) for state in states]
        assert await said_by(saying(*events)) == [
            "working",
            "auth-required",
            "working",
            "completed",
        ]

    async def test_another_attempt_of_the_first_turn_has_no_task(self) -> None:
        tasks: list[Task | None] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            tasks.append(context.current_task)
            await queue.enqueue_event(new_task_from_user_message(asked(context)))
            tell = updater(context, queue)
            await tell.start_work(new_text_message(f"Attempt {len(tasks)}"))
            if len(tasks) == 1:
                await asyncio.Event().wait()

        with hosted(Scripted(work)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()

                async def is_told() -> bool:
                    return status_text(await client.get(task.id)) == "Attempt 1"

                await until(is_told)
                await run_in_thread(take_away)
                await until(lambda: client_state(client, task.id, "completed"))
        assert tasks == [None, None]


class Stopping:
    """An executor that works until it is stopped; what happened, in order."""

    def __init__(self, cancel: Work | None = None) -> None:
        self.steps: list[str] = []
        self.executor = Scripted(self._work, cancel)

    async def _work(self, context: RequestContext, queue: EventQueue) -> None:
        tell = updater(context, queue)
        if context.call_context.state["turn"].attempt > 1:
            return
        await tell.start_work(new_text_message("Here."))
        try:
            await asyncio.Event().wait()
        finally:
            self.steps.append("stopped")
            await tell.cancel(new_text_message("I stop."))

    async def cancelled(self, seconds: float = 4.0) -> list[str]:
        """Cancel the task of a client; what it sees. The executor has so many seconds for it."""
        with hosted(self.executor, cancel_seconds=seconds) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()

                async def is_told() -> bool:
                    return status_text(await client.get(task.id)) == "Here."

                await until(is_told)
                stream = await client.subscribe(task.id)
                await client.cancel(task.id)
                heard = [event async for batch in stream.batches(0.5) for event in batch or ()]
                await stream.close()
                await until(not_carried)
                task = await client.get(task.id)
                assert task.status.state.word == "canceled"
                return [event.body for event in heard if "CANCELED" in event.body]


class TestCancelling:
    async def test_canceled_while_it_is_cancelled_is_the_hosts_own_cancel(self) -> None:
        stopping = Stopping()
        heard = await stopping.cancelled()
        assert len(heard) == 1
        assert "I stop." not in heard[0]

    async def test_cancel_of_the_executor_is_called_and_its_events_count_for_nothing(self) -> None:
        contexts: list[RequestContext] = []

        async def cancel(context: RequestContext, queue: EventQueue) -> None:
            contexts.append(context)
            stopping.steps.append("cancel")
            for _ in range(100):
                await queue.enqueue_event(status(TaskState.TASK_STATE_CANCELED, "Mine."))

        stopping = Stopping(cancel)
        (heard,) = await stopping.cancelled()
        assert "Mine." not in heard
        assert stopping.steps == ["stopped", "cancel"]
        task = contexts[0].current_task
        assert task is not None
        assert task.id == contexts[0].task_id

    async def test_a_cancel_that_raises_is_a_line_in_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        await Stopping().cancelled()
        assert "cancel of the executor: NotImplementedError('cancel not supported')" in caplog.text

    async def test_a_cancel_that_never_ends_is_left_after_some_seconds(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)

        async def cancel(context: RequestContext, queue: EventQueue) -> None:
            await asyncio.Event().wait()

        await Stopping(cancel).cancelled(0.2)
        assert "cancel of the executor: TimeoutError" in caplog.text

    async def test_a_run_that_only_moves_is_not_cancelled_by_the_executor(self) -> None:
        async def cancel(context: RequestContext, queue: EventQueue) -> None:
            stopping.steps.append("cancel")

        stopping = Stopping(cancel)
        with hosted(stopping.executor) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin()

                async def is_told() -> bool:
                    return status_text(await client.get(task.id)) == "Here."

                await until(is_told)
                await run_in_thread(take_away)
                await until(lambda: client_state(client, task.id, "completed"))
                await until(not_carried)
        assert stopping.steps == ["stopped"]


class TestTheContext:
    async def test_says_who_asks_and_for_what(self) -> None:
        contexts: list[RequestContext] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            contexts.append(context)

        caller = Caller(principal="user:alice", tenant="acme")
        extension = "https://example.com/ext"
        with hosted(Scripted(work), forwarded_headers=["x-user-id"]) as agent:
            async with hosting():
                client = Client(agent, caller)
                client.call = lambda **_: CallContext(  # type: ignore[method-assign]
                    agent=agent,
                    caller=caller,
                    extensions=(extension,),
                    headers={"x-user-id": "7", "authorization": "Bearer x"},
                )
                about = {"metadata": {"a": 1}, "accepted_output_modes": ("text/html",)}
                task = await client.send("hello", **about, history_length=2)
                await client.begin("hello", history_length=0)
                await until(lambda: _has(contexts, 2))
        context, later = contexts
        asked_for: list[Any] = [context.configuration, later.configuration]
        assert [(one.return_immediately, one.history_length) for one in asked_for] == [
            (False, 2),
            (True, 0),
        ]
        user = context.call_context.user
        assert (user.is_authenticated, user.user_name) == (True, "user:alice")
        assert (context.tenant, context.requested_extensions) == ("acme", {extension})
        assert (context.task_id, context.context_id) == (task.id, task.context_id)
        assert context.metadata == {"a": 1}
        assert context.configuration is not None
        assert list(context.configuration.accepted_output_modes) == ["text/html"]
        assert context.call_context.state["headers"] == {"x-user-id": "7"}
        assert isinstance(context.call_context.state["turn"], Turn)
        assert asked(context).task_id == task.id

    async def test_an_anonymous_caller_is_no_user(self) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            user = context.call_context.user
            await updater(context, queue).complete(new_text_message(f"{user.is_authenticated}"))

        with hosted(Scripted(work)) as agent:
            async with hosting():
                task = await Client(agent, Caller()).send()
        assert status_text(task) == "False"

    async def test_files_and_data_go_both_ways(self) -> None:
        received: list[list[Part]] = []
        large = bytes(range(256)) * 400

        async def work(context: RequestContext, queue: EventQueue) -> None:
            before = context.current_task.history[0] if context.current_task else asked(context)
            received.append(list(before.parts))
            tell = updater(context, queue)
            if context.current_task:
                received.append(list(context.current_task.artifacts[0].parts))
                return
            parts = [
                new_raw_part(large[::-1], "x/y", "large"),
                new_raw_part(b"abc", "x/y", "small"),
                new_url_part("https://example.com/f", "x/y", "f"),
                new_data_part({"n": [1, None, True]}),
            ]
            await tell.add_artifact(parts, artifact_id="a")
            await tell.requires_input()

        modes = {"default_input_modes": ["*/*"], "default_output_modes": ["*/*"]}
        with hosted(Scripted(work), **modes) as agent:
            async with hosting():
                client = Client(agent)
                request = client.request("files")
                parts = (
                    *request.message.parts,
                    file(large, "large", "x/y"),
                    values.Part(url="https://example.com/f", filename="f"),
                    values.Part(data={"n": 1}),
                )
                message = values.replace(request.message, parts=parts)
                request = dataclasses.replace(request, message=message)
                task = await TABLE["SendMessage"](request, client.call())
                assert isinstance(task, values.Task)
                (artifact,) = map(msgspec.json.decode, task.artifacts or ())
                await client.send("more", task_id=task.id)
        first, again, back = received
        assert first == again
        assert [part.WhichOneof("content") for part in first] == ["text", "raw", "url", "data"]
        assert first[1].raw == large
        assert (first[1].filename, first[1].media_type) == ("large", "x/y")
        assert (first[2].url, first[2].filename) == ("https://example.com/f", "f")
        stored, small, link, data = artifact["parts"]
        assert "url" in stored
        assert base64.b64decode(small["raw"]) == b"abc"
        assert link == {"url": "https://example.com/f", "filename": "f", "mediaType": "x/y"}
        assert data == {"data": {"n": [1, None, True]}}
        assert back[0].raw == large[::-1]


def given(**arguments: Any) -> Any:
    """Arguments whose types nobody checks before the call."""
    return arguments


class TestOldExecutors:
    @pytest.mark.parametrize(
        "old",
        [
            lambda: TaskState.working,  # type: ignore[attr-defined]
            lambda: TaskStatus(**given(state=of_03.TaskState.working)),
            lambda: Part(**given(root=of_03.TextPart(text="x"))),
            lambda: TaskStatusUpdateEvent(**given(final=True)),
            lambda: of_03.Message(
                message_id="m", role=of_03.Role.agent, parts=[of_03.Part(of_03.TextPart(text="x"))]
            ),
        ],
        ids=["enum", "enum of 0.3", "root", "final", "message of 0.3"],
    )
    async def test_is_told_what_to_do(self, old: Callable[[], Any]) -> None:
        async def work(context: RequestContext, queue: EventQueue) -> None:
            await queue.enqueue_event(old())

        assert await said_by(Scripted(work)) == ["working", "failed: The agent failed."]
        told = await trace()
        assert "was written for a2a-sdk 0.3" in told
        assert "TaskState.TASK_STATE_WORKING for TaskState.working" in told

    async def test_any_other_value_is_told_from_an_event(self) -> None:
        assert await said_by(saying("text")) == ["working", "failed: The agent failed."]
        told = await trace()
        assert "builtins.str is no event" in told
        assert "0.3" not in told


class TestPressure:
    async def test_thousands_of_pieces_arrive_in_order(self) -> None:
        count = examples(5000, quick=1000)

        async def work(context: RequestContext, queue: EventQueue) -> None:
            for n in range(count):
                await queue.enqueue_event(piece(f"{n} ", append=n > 0, last=n == count - 1))

        with hosted(Scripted(work)) as agent:
            async with hosting():
                task = await Client(agent).send()
        (artifact,) = map(msgspec.json.decode, task.artifacts or ())
        assert [part["text"] for part in artifact["parts"]] == [f"{n} " for n in range(count)]

    async def test_an_executor_waits_for_a_host_that_waits_for_its_database(self) -> None:
        counted: list[int] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            for n in range(500):
                await queue.enqueue_event(piece(f"{n} ", append=n > 0))
                counted.append(n)

        with hosted(Scripted(work)) as agent:
            ahead: list[int] = []
            async with contextlib.aclosing(drive(agent, make_turn("go"))) as values:
                async for (
                    _
                ) in values:  # the host takes one value at a time, when it has room for it
                    ahead.append(len(counted) - len(ahead))
        assert len(ahead) == 500
        assert max(ahead) <= ROOM + 1

    async def test_all_that_wait_for_room_go_on_when_the_turn_ends(self) -> None:
        said: list[int] = []
        ended: list[int] = []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            async def tell(number: int) -> None:
                for n in range(ROOM + 1):
                    await queue.enqueue_event(piece(f"{n} ", append=n > 0))
                    said.append(n)
                ended.append(number)

            await updater(context, queue).complete()
            await asyncio.gather(*map(tell, range(5)))

        with hosted(Scripted(work), cleanup_seconds=60) as agent:
            async with contextlib.aclosing(drive(agent, make_turn("go"))) as values:
                await anext(values)
                await until(lambda: len(said) == ROOM)
                assert ended == []
        assert sorted(ended) == [*range(5)]

    async def test_memory_does_not_grow_with_the_number_of_pieces(self) -> None:
        text, peaks = "x" * 20_000, []

        async def work(context: RequestContext, queue: EventQueue) -> None:
            for n in range(5000):
                await queue.enqueue_event(piece(f"{n}{text}", append=n > 0))

        with hosted(Scripted(work)) as agent:
            async with contextlib.aclosing(drive(agent, make_turn("go"))) as values:
                await anext(values)
                gc.collect()
                tracemalloc.start()
                try:
                    async for _ in values:
                        pass
                    peaks.append(tracemalloc.get_traced_memory()[1])
                finally:
                    tracemalloc.stop()
        assert peaks[0] < 5_000_000


class Built(ExecutorAgent, abstract=True):
    """An agent that makes an executor for each turn."""

    name = description = "Built"

    async def build(self, turn: Turn) -> AgentExecutor:
        """Make it."""
        await asyncio.sleep(0)
        return saying(new_text_message(f"Built for {turn.text}."))


async def test_an_executor_may_be_made_for_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    with hosted(HelloWorld(), build=Built.build) as agent:
        assert isinstance(agent, Agent)
        async with hosting():
            assert status_text(await Client(agent).send("me")) == "Built for me."


class TestCancelledWhileItWaits:
    async def test_the_executor_hears_of_it_once_with_its_task(self) -> None:
        heard: list[Any] = []
        states: list[Any] = []

        async def ask(context: RequestContext, queue: EventQueue) -> None:
            await queue.enqueue_event(status(TaskState.TASK_STATE_INPUT_REQUIRED, "which?"))

        async def cancel(context: RequestContext, queue: EventQueue) -> None:
            assert context.current_task is not None
            heard.append((context.task_id, context.context_id, context.current_task.id))
            states.append(context.current_task.status.state)
            await queue.enqueue_event(piece("nobody reads it"))

        with hosted(Scripted(ask, cancel)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("hello")
                canceled = await client.cancel(task.id)
                assert canceled.status.state.word == "canceled"
                await until(lambda: _has(heard, 1))
                await until(lambda: run_in_thread(lambda: not CancelNotice.objects.exists()))
        assert heard == [(task.id, task.context_id, task.id)]
        # the server of the a2a-sdk calls it before the end: many executors free nothing of an ended task
        assert states == [TaskState.TASK_STATE_WORKING]

    async def test_a_native_agent_hears_of_it_and_its_errors_change_nothing(self) -> None:
        heard: list[Any] = []

        async def run(turn: Turn) -> Any:
            turn.memory["ticket"] = 7
            return turn.ask("which?")

        def cancelled(self: Any, turn: Turn) -> None:
            heard.append((turn.memory["ticket"], turn.text))
            raise ValueError("too late")

        with playing(run, cancelled=cancelled) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("hello")
                await client.cancel(task.id)
                await until(lambda: _has(heard, 1))
                assert await client.states(task.id) == "canceled"
        assert heard == [(7, "hello")]

    async def test_so_does_one_that_is_parked(self) -> None:
        heard: list[str] = []

        async def run(turn: Turn) -> str:
            await turn.sleep(3600)
            return "awake"

        async def cancelled(self: Any, turn: Turn) -> None:
            heard.append(turn.task_id)

        with playing(run, cancelled=cancelled) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin("hello")
                parked = Run.objects.filter(round=PARKED)
                await until(lambda: run_in_thread(parked.exists))
                await client.cancel(task.id)
                await until(lambda: _has(heard, 1))
        assert heard == [task.id]
