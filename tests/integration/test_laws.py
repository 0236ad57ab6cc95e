"""The laws of the host (docs/decisions; architecture §1): one class each, and each fails when its law is broken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import redis.asyncio
from django.db import IntegrityError, transaction

from a2a_project.operations import TABLE
from a2a_tasks import pubsub
from a2a_tasks.agents import Turn
from a2a_tasks.caller import Caller
from a2a_tasks.execution import dispatch
from a2a_tasks.models import Event, Run, Task
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL, TRANSITIONS, fold
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import Raw, TaskState
from a2a_tasks.store import cancel, runs
from a2a_tasks.store.records import LeaseLost
from tests.servers import MARK
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, listened
from tests.support.execution.waiting import until
from tests.support.store.world import ALICE, Pen, at_once, claim, everything, expire, found, held
from tests.support.subscribers import cut_off

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def local(settings: Any) -> AsyncIterator[None]:
    """Runs are this process's own, and looks at the table are frequent."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.05
    async with hosting():
        yield


async def talks(turn: Turn) -> AsyncIterator[Any]:
    """Say something of everything."""
    yield turn.working("at it")
    page = turn.stream("page")
    yield page.write("one ")
    yield turn.artifact("whole", id="whole")
    await asyncio.sleep(0)
    yield page.write("two", last=True)
    yield "and text"
    if turn.text == "ask":
        yield turn.ask("what?")


@pytest.fixture
def alice() -> Iterator[Client]:
    """A client of an agent that talks."""
    with playing(talks) as agent:
        yield Client(agent)


class TestLaw1PostgresIsTheOnlyTruth:
    """The broker and the channel layer carry hints; with them off all is correct, only slower."""

    @pytest.fixture
    def silence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No hint leaves anybody, nor arrives."""
        monkeypatch.setattr(pubsub, "publish", lambda hint: None)

    @pytest.mark.usefixtures("silence")
    async def test_a_send_is_answered_without_hints(self, alice: Client) -> None:
        assert (await asyncio.wait_for(alice.send(), 20)).status.state.word == "completed"

    @pytest.mark.usefixtures("silence")
    async def test_a_stream_is_whole_without_hints(self, alice: Client) -> None:
        stream = await alice.stream("ask")
        assert stream.first is not None
        assert not isinstance(stream.first, Raw)
        events = await asyncio.wait_for(listened(stream), 20)
        assert fold(stream.first, events) == await alice.get(stream.subject.id)
        task = await asyncio.wait_for(alice.send("more", task_id=stream.subject.id), 20)
        assert task.status.state.word == "completed"

    @pytest.mark.usefixtures("silence")
    async def test_a_run_held_by_nobody_is_found_without_hints(
        self, alice: Client, settings: Any
    ) -> None:
        settings.A2A_RUN_SLOTS = 0  # nothing can be held at the door
        task = await alice.begin()
        settings.A2A_RUN_SLOTS = 10
        async with hosting_again():
            await until(lambda: completed(alice, task.id))

    @pytest.mark.usefixtures("silence")
    async def test_a_cancel_stops_the_agent_without_hints(self, settings: Any) -> None:
        settings.A2A_BEAT_SECONDS = 0.05
        stopped = asyncio.Event()

        async def waits(turn: Turn) -> AsyncIterator[Any]:
            try:
                yield turn.working()
                await asyncio.Event().wait()
            finally:
                stopped.set()

        with playing(waits) as agent:
            client = Client(agent)
            task = await client.begin()
            await until(lambda: word(client, task.id, "working"))
            await client.cancel(task.id)
            await asyncio.wait_for(stopped.wait(), 20)

    @pytest.mark.backend("stack")
    async def test_wiping_redis_costs_no_work(self, settings: Any) -> None:
        wiped = asyncio.Event()

        async def asks_later(turn: Turn) -> AsyncIterator[Any]:
            yield turn.working()
            await wiped.wait()
            yield turn.ask("what?")

        with playing(asks_later) as agent:
            client = Client(agent)
            streams = [await client.stream() for _ in range(5)]
            for stream in streams:
                await until(lambda: word(client, stream.subject.id, "working"))  # noqa: B023
            async with redis.asyncio.Redis.from_url(settings.REDIS_URL) as server:
                claim = MARK.encode()  # of the database, by this run of the tests
                for key in set(await server.keys()) - {claim}:
                    await server.delete(key)
            await asyncio.to_thread(cut_off)
            wiped.set()
            for stream in streams:
                events = await asyncio.wait_for(listened(stream), 20)
                assert events[-1].state is TaskState.INPUT_REQUIRED


async def completed(client: Client, task: str) -> bool:
    return await client.states(task) == "completed"


async def word(client: Client, task: str, expected: str) -> bool:
    return await client.states(task) == expected


@contextlib.asynccontextmanager
async def hosting_again() -> AsyncIterator[None]:
    """The process restarts: another runner, on the same loop."""
    async with hosting():
        pass
    await dispatch.ensure_started()
    yield


class TestLaw2OneWriter:
    """A task changes in one transaction with its events, numbered without gaps."""

    @pytest.mark.django_db(transaction=True)
    def test_writers_at_once_share_no_number_and_leave_no_gap(self) -> None:
        pen = Pen(held())

        def speak() -> None:
            for n in range(10):
                pen.add("a", str(n))

        assert at_once(speak, speak, speak) == [None] * 3
        numbers = list(Event.objects.order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, 32))
        assert Task.objects.get().last_event == 31

    @pytest.mark.django_db(transaction=True)
    def test_what_cannot_be_written_whole_is_not_written_at_all(self) -> None:
        pen = Pen(held())
        with pytest.raises(IntegrityError):
            pen.state(TaskState.COMPLETED)  # an end that keeps the task
        assert (Task.objects.get().last_event, Event.objects.count()) == (1, 1)

    @pytest.mark.django_db(transaction=True)
    def test_an_announcement_comes_after_its_commit(self) -> None:
        pen, seen = Pen(held()), []

        def look(hint: pubsub.Hint) -> None:
            if isinstance(hint, pubsub.Committed):
                (last,) = at_once(
                    lambda: Task.objects.get(pk=hint.task).last_event
                )  # another connection
                seen.append((hint.last, last))

        with pubsub.listen(look):
            pen.state(TaskState.WORKING)
            cancel.cancel(ALICE, "task-1")
        assert seen == [(2, 2), (3, 3)]


class TestLaw3TerminalIsFinal:
    """Exactly one terminal event, and nothing after it."""

    def test_no_edge_leaves_an_end(self) -> None:
        assert all(not TRANSITIONS[state] for state in TERMINAL)

    @pytest.mark.parametrize("end", sorted(TERMINAL))
    def test_nothing_follows_an_end(self, end: TaskState) -> None:
        pen = Pen(held())
        if end is TaskState.CANCELED:
            cancel.cancel(ALICE, "task-1")
        else:
            pen.end(end)
        for late in (lambda: pen.state(TaskState.WORKING), lambda: pen.add("a", "x"), pen.end):
            with pytest.raises(LeaseLost):
                late()  # type: ignore[no-untyped-call]
        events = everything(pen.run.task)
        assert [event.state for event in events if event.state] == [end]
        assert events[-1].state is end

    def test_no_run_can_hold_what_has_ended(self) -> None:
        pen = Pen(held())
        pen.end()
        with (
            pytest.raises(IntegrityError, match="an_ended_task_is_held_by_no_run"),
            transaction.atomic(),
        ):
            Task.objects.update(run_token="x")


class TestLaw4ARunIsHeldByALease:
    """Every write of a run names its token; none matched means fenced."""

    def test_cancel_takes_the_token_away(self) -> None:
        pen = Pen(held())
        cancel.cancel(ALICE, "task-1")
        self.fenced(pen)

    def test_rescue_takes_the_token_away(self) -> None:
        pen = Pen(held())
        expire(pen.run.key)
        assert runs.reclaim_expired(max_attempts=3) == 1
        self.fenced(pen)
        (taken,) = claim()
        self.fenced(pen)
        assert Pen(taken).end() == 2

    def test_a_lease_is_measured_by_the_database_not_by_the_process(self) -> None:
        run = held()
        assert runs.heartbeat([run.token]) == {run.token}
        row = Run.objects.get()
        assert row.lease_until is not None
        assert runs.reclaim_expired(max_attempts=3) == 0

    def fenced(self, pen: Pen) -> None:
        before = everything(pen.run.task)
        with pytest.raises(LeaseLost):
            pen.state(TaskState.WORKING)
        assert everything(pen.run.task) == before
        assert runs.heartbeat([pen.run.token]) == set()


@pytest.mark.django_db(transaction=True)
class TestLaw5AcceptedMeansCommitted:
    """What was answered is in the database, as another connection sees it."""

    async def test_what_was_answered_at_once_is_there(self, alice: Client) -> None:
        task = await alice.begin()
        assert await asyncio.to_thread(
            at_once, lambda: Task.objects.filter(public_id=task.id).count()
        ) == [1]

    async def test_what_a_stream_began_with_is_there(self, alice: Client) -> None:
        stream = await alice.stream()
        assert await asyncio.to_thread(at_once, lambda: Event.objects.filter(number=1).count()) == [
            1
        ]
        await stream.close()

    async def test_what_a_stream_showed_is_there(self, alice: Client) -> None:
        stream = await alice.stream("ask")
        async for batch in stream.batches(1):
            if batch:
                newest = batch[-1].number
                (last,) = await asyncio.to_thread(at_once, lambda: Task.objects.get().last_event)
                assert isinstance(last, int)
                assert last >= newest
        await stream.close()


class TestLaw6ReplayEqualsRead:
    """Folding what was streamed gives what GetTask returns."""

    @pytest.mark.parametrize("text", ["hello", "ask"])
    async def test_from_the_first_event(self, text: str, alice: Client) -> None:
        stream = await alice.stream(text)
        assert stream.first is not None
        assert not isinstance(stream.first, Raw)
        assert fold(stream.first, await listened(stream)) == await alice.get(stream.subject.id)

    @pytest.mark.django_db(transaction=True)
    async def test_from_any_moment_one_subscribes_at(self) -> None:
        step, steps = asyncio.Event(), 12

        async def slow(turn: Turn) -> AsyncIterator[Any]:
            page = turn.stream("page")
            for n in range(steps):
                yield page.write(str(n), last=n == steps - 1)
                await step.wait()
                step.clear()

        with playing(slow) as agent:
            client = Client(agent)
            task = await client.begin()
            streams = []
            for _ in range(steps):
                streams.append(await client.subscribe(task.id))
                step.set()
                await until(lambda: not step.is_set())
            final = await until(lambda: final_task(client, task.id))
            for stream in streams:
                assert stream.first is not None
                assert not isinstance(stream.first, Raw)
                assert fold(stream.first, await listened(stream)) == final


async def final_task(client: Client, task: str) -> Any:
    read = await client.get(task)
    return read if read.status.state in TERMINAL else None


class TestLaw7OtherPeoplesObjectsDoNotExist:
    """The same answer as for what is not there."""

    async def test_a_foreign_id_is_a_missing_id(self, alice: Client) -> None:
        task = await alice.send("ask")
        charlie = Client(alice.agent, Caller(principal="user:charlie"))
        answers = []
        for name in (task.id, "missing"):
            with pytest.raises(TaskNotFound) as refused:
                await charlie.get(name)
            fault = refused.value
            answers.append((str(fault), fault.code, str(fault.details).replace(name, "ID")))
        assert answers[0] == answers[1]

    async def test_a_list_shows_and_counts_ones_own(self, alice: Client) -> None:
        await alice.send("ask")
        charlie = Client(alice.agent, Caller(principal="user:charlie"))
        page = await TABLE["ListTasks"](ListTasksRequest(), charlie.call())
        assert (page.tasks, page.total_size, page.next_page_token) == ([], 0, "")

    async def test_another_agent_of_the_same_owner_is_another_drawer(self, alice: Client) -> None:
        task = await alice.send("ask")
        with playing(talks) as other, pytest.raises(TaskNotFound):
            await Client(other).get(task.id)

    def test_an_id_may_be_taken_by_each(self) -> None:
        Pen(held("same")).end()
        Pen(held("same", scope=ALICE.__class__("", "user:bob", "demo"))).state(TaskState.WORKING)
        assert found("same").state is TaskState.COMPLETED
