"""The published a2a-sdk client does all it can, over both bindings; on the stack it reads on another web process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
from a2a.types import SendMessageRequest, StreamResponse, Task, TaskState
from a2a.utils import errors

from tests.journeys.hosts import Host, host
from tests.journeys.sdk import BINDINGS, Official, last_state, official, said, word

S = TaskState
BEGUN = {S.TASK_STATE_SUBMITTED, S.TASK_STATE_WORKING}


@pytest.fixture(scope="module")
def one(emptied: None) -> Iterator[Host]:
    """A host."""
    with host() as made:
        yield made


@dataclass(frozen=True)
class Pair:
    """The client at the process that takes messages, and at another one if there are two."""

    here: Official
    there: Official


async def _talk(running: Host, binding: str) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(official(running.here, binding))
        there = await stack.enter_async_context(official(running.there, binding))
        yield Pair(here, there)


@pytest.fixture(params=BINDINGS)
async def on_one(one: Host, request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Talk over each binding."""
    async for pair in _talk(one, request.param):
        yield pair


def kinds(events: list[StreamResponse]) -> list[str | None]:
    """What each event is."""
    return [event.WhichOneof("payload") for event in events]


class TestOverEachBinding:
    async def test_a_message_is_sent_and_its_task_is_read_elsewhere(self, on_one: Pair) -> None:
        text = word()
        task = await on_one.here.send(f"echo {text}")
        assert task.status.state == S.TASK_STATE_COMPLETED
        assert said(*task.artifacts) == text
        assert await on_one.there.get(task.id) == task

    async def test_a_long_task_is_returned_at_once_and_polled_elsewhere(self, on_one: Pair) -> None:
        task = await on_one.here.start("slow 2")
        assert task.status.state in BEGUN
        done = await on_one.there.until(task.id, S.TASK_STATE_COMPLETED)
        assert said(*done.artifacts) == "Slept 2 s"

    async def test_chunks_are_streamed_in_order_and_add_up(self, on_one: Pair) -> None:
        events = await on_one.here.stream("chunks 20")
        assert kinds(events)[0] == "task"
        updates = [e.artifact_update for e in events if e.HasField("artifact_update")]
        assert [update.append for update in updates] == [False] + [True] * 19
        assert [update.last_chunk for update in updates] == [False] * 19 + [True]
        assert last_state(events) == S.TASK_STATE_COMPLETED
        task = await on_one.there.get(events[0].task.id)
        assert said(*task.artifacts) == said(*[update.artifact for update in updates])

    async def test_a_running_task_is_followed_elsewhere_by_two(self, on_one: Pair) -> None:
        task = await on_one.here.start("slow 2")
        streams = await asyncio.gather(
            on_one.here.subscribe(task.id), on_one.there.subscribe(task.id)
        )
        for events in streams:
            assert events[0].task.id == task.id
            assert events[0].task.status.state in BEGUN
            assert last_state(events) == S.TASK_STATE_COMPLETED

    async def test_a_dropped_stream_is_taken_up_again_elsewhere(self, on_one: Pair) -> None:
        stream = on_one.here.streaming.send_message(on_one.here.request("slow 2"))
        first = await anext(stream)
        assert isinstance(stream, AsyncGenerator)
        await stream.aclose()
        events = await on_one.there.subscribe(first.task.id)
        assert events[0].task.id == first.task.id
        assert last_state(events) == S.TASK_STATE_COMPLETED

    async def test_a_running_task_is_cancelled_elsewhere_which_ends_its_streams(
        self, on_one: Pair
    ) -> None:
        task = await on_one.here.start("slow 60")
        stream = on_one.here.subscription(task.id)
        events = [await anext(stream)]
        canceled = await on_one.there.cancel(task.id)
        assert canceled.status.state == S.TASK_STATE_CANCELED
        events += [event async for event in stream]
        assert last_state(events) == S.TASK_STATE_CANCELED

    async def test_an_agent_asks_back_and_is_answered_elsewhere(self, on_one: Pair) -> None:
        asked = await on_one.here.send("ask Who?")
        assert asked.status.state == S.TASK_STATE_INPUT_REQUIRED
        assert said(asked.status.message) == "Who?"
        answer = word()
        done = await on_one.there.send(answer, task=asked.id)
        assert (done.id, done.context_id) == (asked.id, asked.context_id)
        assert done.status.state == S.TASK_STATE_COMPLETED
        assert answer in said(*done.artifacts)
        assert [said(m) for m in done.history if m.role == 1] == ["ask Who?", answer]

    async def test_twenty_clients_at_once_get_their_own_answers(self, on_one: Pair) -> None:
        words = [word() for _ in range(20)]
        tasks = await asyncio.gather(*(on_one.here.send(f"echo {text}") for text in words))
        assert [said(*task.artifacts) for task in tasks] == words


class TestTurns:
    async def test_an_answer_may_be_a_message_without_a_task(self, on_one: Pair) -> None:
        answer = await on_one.here.answer("message hello")
        assert said(answer.message) == "hello"
        (event,) = await on_one.here.stream("message hello")
        assert said(event.message) == "hello"

    @pytest.mark.parametrize(
        ("text", "state"),
        [("fail boom", S.TASK_STATE_FAILED), ("reject boom", S.TASK_STATE_REJECTED)],
    )
    async def test_a_task_may_end_badly_and_says_why(
        self, on_one: Pair, text: str, state: TaskState
    ) -> None:
        task = await on_one.here.send(text)
        assert (task.status.state, said(task.status.message)) == (state, "boom")
        assert last_state(await on_one.here.stream(text)) == state

    async def test_a_stream_ends_where_the_agent_asks_and_the_next_begins_with_the_task(
        self, on_one: Pair
    ) -> None:
        events = await on_one.here.stream("ask Who?")
        assert last_state(events) == S.TASK_STATE_INPUT_REQUIRED
        more = await on_one.there.stream("Ada", task=events[0].task.id)
        assert kinds(more)[0] == "task"
        assert last_state(more) == S.TASK_STATE_COMPLETED

    async def test_an_agent_may_ask_for_a_credential(self, on_one: Pair) -> None:
        task = await on_one.here.send("auth the vault")
        assert task.status.state == S.TASK_STATE_AUTH_REQUIRED
        done = await on_one.there.send("here it is", task=task.id)
        assert done.status.state == S.TASK_STATE_COMPLETED

    async def test_a_task_that_waits_can_be_cancelled(self, on_one: Pair) -> None:
        task = await on_one.here.send("ask Who?")
        assert (await on_one.there.cancel(task.id)).status.state == S.TASK_STATE_CANCELED

    async def test_a_context_joins_tasks(self, on_one: Pair) -> None:
        first = await on_one.here.send("echo one")
        second = await on_one.there.send("echo two", context=first.context_id)
        assert second.context_id == first.context_id
        assert second.id != first.id

    async def test_history_is_as_long_as_asked_for(self, on_one: Pair) -> None:
        task = await on_one.here.send("ask Who?")
        await on_one.here.send("Ada", task=task.id)
        assert said((await on_one.there.get(task.id)).history[0]) == "ask Who?"
        assert len((await on_one.there.get(task.id, history_length=1)).history) == 1
        assert not (await on_one.there.get(task.id, history_length=0)).history

    async def test_files_and_data_come_as_they_are(self, on_one: Pair) -> None:
        task = await on_one.here.send("file some bytes")
        file, link = task.artifacts
        assert (file.parts[0].raw, file.parts[0].filename) == (b"some bytes", "demo.txt")
        assert link.parts[0].url == "https://example.com/demo.txt"
        data = (await on_one.here.send("data word")).artifacts[0].parts[0].data
        assert dict(data.struct_value) == {"said": "word", "length": 4.0}

    async def test_events_come_as_they_happen(self, on_one: Pair) -> None:
        stream = on_one.here.streaming.send_message(on_one.here.request("sleep 60"))
        events = [await anext(stream), await anext(stream)]
        assert said(events[1].status_update.status.message) == "Sleeping 60 s"
        await on_one.there.cancel(events[0].task.id)
        assert last_state([event async for event in stream]) == S.TASK_STATE_CANCELED


class TestLists:
    async def five(self, client: Official) -> list[Task]:
        """Five tasks of one context, oldest first."""
        tasks = [await client.send("echo 0")]
        for i in range(1, 5):
            tasks.append(await client.send(f"echo {i}", context=tasks[0].context_id))
        return tasks

    async def test_pages_hold_every_task_once_latest_first(self, on_one: Pair) -> None:
        made = await self.five(on_one.here)
        seen: list[str] = []
        sizes, token = [], ""
        while True:
            page = await on_one.there.list(
                context_id=made[0].context_id, page_size=2, page_token=token
            )
            assert page.total_size == 5
            seen += [task.id for task in page.tasks]
            sizes.append(len(page.tasks))
            token = page.next_page_token
            if not token:
                break
        assert sizes == [2, 2, 1]
        assert seen == [task.id for task in reversed(made)]

    async def test_filters_by_context_state_and_time(self, on_one: Pair) -> None:
        made = await self.five(on_one.here)
        context = made[0].context_id
        asked = await on_one.here.send("ask Who?", context=context)
        done = await on_one.there.list(context_id=context, status=S.TASK_STATE_COMPLETED)
        assert {task.id for task in done.tasks} == {task.id for task in made}
        asks = await on_one.there.list(context_id=context, status=S.TASK_STATE_INPUT_REQUIRED)
        assert [task.id for task in asks.tasks] == [asked.id]
        later = await on_one.there.list(
            context_id=context, status_timestamp_after=made[2].status.timestamp
        )
        assert {made[3].id, made[4].id, asked.id} <= {task.id for task in later.tasks}
        assert not {made[0].id, made[1].id} & {task.id for task in later.tasks}
        assert not (await on_one.there.list(context_id=f"no-{word()}")).tasks

    async def test_artifacts_come_only_if_asked_for(self, on_one: Pair) -> None:
        context = (await on_one.here.send("echo it")).context_id
        (bare,) = (await on_one.there.list(context_id=context, history_length=0)).tasks
        assert not bare.artifacts
        assert not bare.history
        (full,) = (await on_one.there.list(context_id=context, include_artifacts=True)).tasks
        assert said(*full.artifacts) == "it"

    @pytest.mark.parametrize(
        "wrong", [{"page_token": "no token"}, {"page_size": -1}, {"history_length": -1}]
    )
    async def test_wrong_arguments_are_refused(
        self, on_one: Pair, wrong: dict[str, object]
    ) -> None:
        with pytest.raises(errors.InvalidParamsError):
            await on_one.here.list(**wrong)


class TestErrors:
    async def test_what_is_not_there_is_not_found(self, on_one: Pair) -> None:
        missing = f"no-{word()}"
        for call in (on_one.here.get, on_one.here.cancel, on_one.here.subscribe):
            with pytest.raises(errors.TaskNotFoundError):
                await call(missing)
        with pytest.raises(errors.TaskNotFoundError):
            await on_one.here.send("echo x", task=missing)

    async def test_what_has_ended_takes_no_message_no_cancel_and_no_subscriber(
        self, on_one: Pair
    ) -> None:
        task = await on_one.here.send("echo x")
        with pytest.raises(errors.UnsupportedOperationError):
            await on_one.there.send("echo y", task=task.id)
        with pytest.raises(errors.TaskNotCancelableError):
            await on_one.there.cancel(task.id)
        with pytest.raises(errors.UnsupportedOperationError):
            await on_one.there.subscribe(task.id)

    async def test_a_second_cancel_is_refused(self, on_one: Pair) -> None:
        task = await on_one.here.start("slow 60")
        await on_one.here.cancel(task.id)
        with pytest.raises(errors.TaskNotCancelableError):
            await on_one.there.cancel(task.id)

    async def test_a_message_to_the_wrong_context_changes_nothing(self, on_one: Pair) -> None:
        task = await on_one.here.send("ask Who?")
        with pytest.raises(errors.A2AError):
            await on_one.here.send("Ada", task=task.id, context=f"other-{word()}")
        assert (await on_one.there.get(task.id)) == task

    async def test_a_message_without_parts_is_refused(self, on_one: Pair) -> None:
        request: SendMessageRequest = on_one.here.request("x")
        del request.message.parts[:]
        with pytest.raises(errors.InvalidParamsError):
            await anext(on_one.here.plain.send_message(request))
