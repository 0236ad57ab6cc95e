"""The hub: one read for many followers, hints for speed, polling for truth."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from a2a_tasks import pubsub
from a2a_tasks.models import Event, Task
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.dialects import DIALECTS, Subject
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL, LogEvent
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.append import append
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.purge import RetentionLimits, purge
from a2a_tasks.streaming import event_buffer as hub_module
from a2a_tasks.streaming.event_buffer import TaskEventBuffer, hub
from a2a_tasks.streaming.stream import EventReader, EventsRemoved
from tests.support.execution.host import hosting
from tests.support.execution.waiting import until
from tests.support.store.world import Pen, chunk, everything, held

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
async def alone() -> AsyncIterator[None]:
    """Each test has a hub of its own."""
    async with hosting():
        yield


@pytest.fixture
async def pen() -> Pen:
    """A run that can be made to speak."""
    return Pen(await run_in_thread(held))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Every read of a log from here on: (task, after)."""
    seen: list[tuple[int, int]] = []
    real = event_log.read_after

    def read_after(task: int, number: int, limit: int = event_log.SLICE) -> list[LogEvent]:
        seen.append((task, number))
        return real(task, number, limit)

    monkeypatch.setattr(event_log, "read_after", read_after)
    return seen


def ends(event: LogEvent) -> bool:
    """Is this the last event of a task?"""
    return event.state in TERMINAL


@contextlib.asynccontextmanager
async def follow(
    pen: Pen, after: int = 1, until: Callable[[LogEvent], bool] = ends
) -> AsyncIterator[EventReader]:
    """A follower, to the end of the task unless told otherwise."""
    follower = await EventReader.open(pen.run.task, after=after, until=until)
    try:
        yield follower
    finally:
        await follower.close()


async def many(stack: contextlib.AsyncExitStack, pen: Pen, count: int) -> list[EventReader]:
    """So many followers, opened at once."""
    opening = (stack.enter_async_context(follow(pen)) for _ in range(count))
    return list(await asyncio.gather(*opening))


def feed_of(follower: EventReader) -> TaskEventBuffer:
    """What a follower reads."""
    assert follower.feed is not None
    return follower.feed


async def heard(following: contextlib.AbstractAsyncContextManager[EventReader]) -> list[int]:
    """The numbers of all events up to the end."""
    numbers: list[int] = []
    async with following as follower:
        while not follower.done:
            numbers += [event.number for event in await follower.next(20)]
    return numbers


def speak(pen: Pen, count: int = 20) -> None:
    """Say many things, each for itself, and end."""
    for n in range(count):
        append(pen.batch(chunk("a", str(n))))
    pen.end()


def silently(pen: Pen, count: int = 3) -> None:
    """The same, as a process would whose hints are lost."""
    real = pubsub.publish
    pubsub.publish = lambda hint: None
    try:
        speak(pen, count)
    finally:
        pubsub.publish = real


class TestMany:
    async def test_many_followers_cost_one_read(
        self, pen: Pen, reads: list[tuple[int, int]], settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 60.0  # a look may come between an event and its hint
        async with contextlib.AsyncExitStack() as stack:
            followers = await many(stack, pen, 50)
            reads.clear()
            await run_in_thread(speak, pen, 5)
            for follower in followers:
                got: list[int] = []
                while not follower.done:
                    got += [event.number for event in await follower.next(20)]
                assert got == [2, 3, 4, 5, 6, 7]
        assert len(reads) <= 1, "the events came along with the hints"
        assert hub()._feeds == {}, "nobody follows any more"

    async def test_events_written_by_others_are_read_once_for_all(
        self, pen: Pen, reads: list[tuple[int, int]], settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 0.05
        async with contextlib.AsyncExitStack() as stack:
            followers = await many(stack, pen, 20)
            await until(lambda: hub()._feeds[pen.run.task].end == 1)
            reads.clear()
            await run_in_thread(silently, pen)
            for follower in followers:
                got: list[int] = []
                while not follower.done:
                    got += [event.number for event in await follower.next(20)]
                assert got == [2, 3, 4, 5]
        assert len(reads) <= 4

    async def test_an_event_is_encoded_once_for_all(self, pen: Pen) -> None:
        calls: list[int] = []

        class Dialect:
            code = "x"

            def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
                calls.append(event.number)
                return str(event.number).encode()

        async with follow(pen) as one, follow(pen) as other:
            await run_in_thread(pen.state, TaskState.WORKING)
            (event,) = await one.next(20)
            await other.next(20)
            dialect = cast("Any", Dialect())
            frames = [
                feed_of(f).encode(dialect, Subject("t", "c"), event, final=False)
                for f in (one, other)
            ]
        assert frames == [b"2", b"2"]
        assert calls == [2]


class TestWithoutHints:
    async def test_polling_delivers_what_hints_did_not(self, pen: Pen, settings: Any) -> None:
        settings.A2A_POLL_SECONDS = 0.05
        following = asyncio.ensure_future(heard(follow(pen)))
        await until(lambda: hub()._feeds)
        await run_in_thread(silently, pen)
        assert await asyncio.wait_for(following, 10) == [2, 3, 4, 5]

    async def test_the_poll_survives_a_database_that_errs(
        self, pen: Pen, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_POLL_SECONDS = 0.05
        real, errs = event_log.find_other_ends, threading.Event()

        def find_other_ends(known: Any) -> dict[int, int | None]:
            if not errs.is_set():
                errs.set()
                raise LookupError("once")
            return real(known)

        monkeypatch.setattr(event_log, "find_other_ends", find_other_ends)
        following = asyncio.ensure_future(heard(follow(pen)))
        await until(errs.is_set)
        await run_in_thread(silently, pen)
        assert await asyncio.wait_for(following, 5) == [2, 3, 4, 5]

    async def test_reads_of_a_database_that_is_away_are_one_line_of_the_log(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def read_after(*_: Any) -> list[LogEvent]:
            raise Overloaded.away(undone=True) from OperationalError("too many clients")

        line = ThrottledLogger(hub_module.logger, "not read")
        async with follow(pen) as follower:
            with monkeypatch.context() as patch:
                patch.setattr(hub_module, "_blind", line)
                patch.setattr(event_log, "read_after", read_after)
                for _ in range(20):
                    await hub()._catch_up(feed_of(follower))
        lines = [line for line in caplog.records if line.name == hub_module.logger.name]
        assert [line.getMessage() for line in lines] == ["not read: too many clients"]

    @pytest.mark.backend("stack")
    async def test_a_hint_of_another_process_is_followed_at_once(
        self, pen: Pen, settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 60.0
        following = asyncio.ensure_future(heard(follow(pen)))
        await until(lambda: hub()._subscriber._pubsub is not None and hub()._feeds)
        await asyncio.sleep(0)
        await until(lambda: hub()._subscriber._acknowledged or hub()._subscriber._wanted)
        await run_in_thread(silently, pen)  # the other process wrote ...

        async def arrived() -> bool:  # ... and its hint comes over Redis, without the events
            pubsub._publisher.put(pubsub.Committed(pen.run.task, 5))
            return following.done()

        await until(arrived, 10)
        assert await following == [2, 3, 4, 5]


class TestOrder:
    async def test_a_gap_is_read(self, pen: Pen, settings: Any) -> None:
        settings.A2A_POLL_SECONDS = 60.0
        async with follow(pen) as follower:
            await run_in_thread(silently, pen)
            events = await run_in_thread(everything, pen.run.task)
            hub()._hear(pubsub.Committed(pen.run.task, 4, events[3:4]))
            got = await follower.next(10)
            while not follower.done and got[-1].number < 5:
                got += await follower.next(10)
        assert [event.number for event in got] == [2, 3, 4, 5]

    async def test_a_hint_that_comes_twice_or_late_says_nothing_new(self, pen: Pen) -> None:
        feed = TaskEventBuffer(pen.run.task, 1)
        await run_in_thread(silently, pen)
        events = await run_in_thread(everything, pen.run.task)
        for part in (events[1:3], events[1:3], events[1:2], events[3:], events[2:]):
            feed.push(part)
        assert [event.number for event in await feed.after(1)] == [2, 3, 4, 5]

    @pytest.mark.django_db(transaction=True)
    async def test_a_hint_during_a_read_is_not_lost(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        """The read had looked already: the news must be read again, without waiting for the poll."""
        settings.A2A_POLL_SECONDS = 60.0
        async with follow(pen) as follower:
            real, looked, go = event_log.read_after, threading.Event(), threading.Event()

            def read_after(task: int, number: int, limit: int = event_log.SLICE) -> list[LogEvent]:
                found = real(task, number, limit)
                if not looked.is_set():
                    looked.set()
                    go.wait(30)
                return found

            monkeypatch.setattr(event_log, "read_after", read_after)
            feed = hub()._feeds[pen.run.task]
            hub()._spawn(feed)
            await asyncio.to_thread(looked.wait, 30)
            await asyncio.to_thread(in_thread, silently, pen)
            hub()._hear(pubsub.Committed(pen.run.task, 5))
            await asyncio.sleep(0)
            go.set()
            got: list[int] = []
            async with asyncio.timeout(60):
                while not follower.done:
                    got += [event.number for event in await follower.next()]
        assert got == [2, 3, 4, 5]

    @pytest.mark.django_db(transaction=True)
    async def test_many_writers_and_followers_miss_and_double_nothing(self, pen: Pen) -> None:
        async def late(n: int) -> list[int]:
            await until(
                lambda: run_in_thread(lambda: Task.objects.get(pk=pen.run.task).last_event > n)
            )
            return await heard(follow(pen))

        following = [asyncio.ensure_future(late(n)) for n in range(0, 30, 3)]
        await run_in_thread(speak, pen, 40)
        for numbers in await asyncio.gather(*following):
            assert numbers == list(range(2, 43))


def in_thread(work: Any, *args: Any) -> None:
    """Run a query of another process: in a thread whose connection is closed again."""
    try:
        work(*args)
    finally:
        connections.close_all()


class TestFollower:
    async def test_it_begins_after_its_number_and_ends_at_the_end(self, pen: Pen) -> None:
        await run_in_thread(speak, pen, 3)
        assert await heard(follow(pen, after=0)) == [1, 2, 3, 4, 5]
        assert await heard(follow(pen, after=3)) == [4, 5]

    async def test_after_the_end_nothing_comes(self, pen: Pen) -> None:
        await run_in_thread(speak, pen, 1)
        async with follow(pen) as follower:
            await follower.next(10)
            assert follower.done
            assert await follower.next(10) == []
            assert follower.number == 3

    async def test_a_quiet_while_brings_nothing(self, pen: Pen) -> None:
        async with follow(pen) as follower:
            assert await follower.next(0.01) == []
            assert not follower.done

    async def test_it_stops_in_the_middle_of_a_batch(self, pen: Pen) -> None:
        await run_in_thread(speak, pen, 5)
        assert await heard(follow(pen, until=lambda event: event.number == 4)) == [2, 3, 4]

    async def test_a_slow_one_reads_the_log(self, pen: Pen, settings: Any) -> None:
        settings.A2A_FEED_EVENTS = 5
        async with follow(pen) as slow, follow(pen) as quick:
            await run_in_thread(speak, pen, 30)
            await until(lambda: feed_of(quick).end == 32)
            assert len(feed_of(quick)._tail) == 5
            got: list[int] = []
            while not slow.done:
                got += [event.number for event in await slow.next(10)]
        assert got == list(range(2, 33))

    async def test_keeps_no_more_bytes_than_its_share_with_its_frames(self, pen: Pen) -> None:
        word = "x" * (hub_module.FEED_BYTES // 8)
        async with follow(pen) as slow, follow(pen) as quick:
            got: list[int] = []
            for _ in range(12):
                await run_in_thread(lambda: append(pen.batch(chunk("a", word))))
                for event in await quick.next(20):
                    subject = Subject("t", "c")
                    feed_of(quick).encode(DIALECTS["v10"], subject, event, final=False)
                    got.append(event.number)
                kept = [*feed_of(quick)._tail]
                frames = [f for each in feed_of(quick)._frames.values() for f in each.values()]
                cost = sum(event.size for event in kept) + sum(map(len, frames))
                assert cost <= hub_module.FEED_BYTES
                assert feed_of(quick)._bytes == cost + hub_module.EVENT_BYTES * len(kept)
            assert 2 <= len(kept) <= 4, "event and frame: an eighth each"
            assert got == list(range(2, 14)), "the quick one had each"
            await run_in_thread(pen.end)
            got = []
            while not slow.done:
                events = await slow.next(20)
                assert len(events) == 1 or sum(e.size for e in events) < 2 * event_log.SLICE_BYTES
                got += [event.number for event in events]
        assert got == list(range(2, 15))

    async def test_shares_the_bytes_of_the_hub_with_the_other_feeds(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hub_module, "HUB_BYTES", 30_000)
        async with contextlib.AsyncExitStack() as stack:
            follower = await stack.enter_async_context(follow(pen))
            await run_in_thread(
                lambda: append(pen.batch(*[chunk("a", "x" * 1000) for _ in range(40)]))
            )
            await until(lambda: feed_of(follower).end == 41)
            assert 15_000 < feed_of(follower)._bytes <= 30_000
            for n in range(2):
                other = Pen(await run_in_thread(held, f"other-{n}"))
                await stack.enter_async_context(follow(other))
            await run_in_thread(lambda: append(pen.batch(chunk("a", "x" * 1000))))
            await until(lambda: feed_of(follower).end == 42)
            assert feed_of(follower)._bytes <= 10_000

    async def test_gives_an_event_that_is_too_large_to_be_kept(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hub_module, "FEED_BYTES", 100)
        async with follow(pen) as one, follow(pen) as other:
            await run_in_thread(speak, pen, 3)
            for follower in (one, other):
                got: list[int] = []
                while not follower.done:
                    got += [event.number for event in await follower.next(20)]
                assert got == [2, 3, 4, 5]
            assert not feed_of(one)._tail

    async def test_one_far_behind_comes_slice_by_slice(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_log.read_after, "__defaults__", (7, event_log.SLICE_BYTES))
        monkeypatch.setattr(event_log, "SLICE", 7)
        await run_in_thread(speak, pen, 30)
        assert await heard(follow(pen)) == list(range(2, 33))

    async def test_a_follower_that_leaves_takes_nobody_along(self, pen: Pen) -> None:
        async with follow(pen) as stays:
            leaving = asyncio.ensure_future(heard(follow(pen)))
            await until(lambda: hub()._feeds[pen.run.task].followers == 2)
            leaving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await leaving
            assert hub()._feeds[pen.run.task].followers == 1
            await run_in_thread(pen.state, TaskState.WORKING)
            assert [event.number for event in await stays.next(10)] == [2]

    @pytest.mark.django_db(transaction=True)
    async def test_followers_hold_no_thread_and_no_connection_while_idle(
        self, pen: Pen, settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 60.0
        async with contextlib.AsyncExitStack() as stack:
            await many(stack, pen, 20)
            threads = threading.active_count()
            waiting = [
                asyncio.ensure_future(follower.next()) for follower in await many(stack, pen, 200)
            ]
            await asyncio.sleep(0)
            # The store may have begun some of its own.
            assert threading.active_count() < threads + 100
            assert await run_in_thread(lambda: True), "the store's threads are free"
            await run_in_thread(pen.end)
            assert all(
                [event.number for event in got] == [2] for got in await asyncio.gather(*waiting)
            )


def forgotten(pen: Pen, before: int) -> None:
    """Retention, in another process: the events before this number are gone."""
    Event.objects.filter(task_id=pen.run.task, number__lt=before).delete()


class TestWhereEventsWereRemoved:
    """Nobody gets what comes after a gap as if nothing were missing, and nobody waits for what never comes."""

    async def outcome(self, follower: EventReader) -> list[int]:
        """The numbers a follower gets, and in the end the number before which there are no events."""
        got: list[int] = []
        try:
            async with asyncio.timeout(60):
                while not follower.done:
                    got += [event.number for event in await follower.next()]
        except EventsRemoved as gap:
            return [*got, -gap.before]
        return got

    @pytest.mark.parametrize("before", [3, 5, 23])
    async def test_one_who_begins_before_the_gap_is_told(self, pen: Pen, before: int) -> None:
        await run_in_thread(speak, pen)
        await run_in_thread(forgotten, pen, before)
        async with follow(pen, after=1) as follower:
            assert await self.outcome(follower) == [-before]
            found = await follower.restart()
            assert follower.done
        assert found.last_event == 22
        assert found.state is TaskState.COMPLETED

    async def test_one_who_begins_after_it_gets_the_rest(self, pen: Pen) -> None:
        await run_in_thread(speak, pen, 3)
        await run_in_thread(forgotten, pen, 4)
        async with follow(pen, after=3) as follower:
            assert await self.outcome(follower) == [4, 5]

    async def test_one_far_behind_is_told_in_the_middle(
        self, pen: Pen, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_FEED_EVENTS = 5
        monkeypatch.setattr(event_log.read_after, "__defaults__", (7, event_log.SLICE_BYTES))
        monkeypatch.setattr(event_log, "SLICE", 7)
        await run_in_thread(speak, pen, 30)
        async with follow(pen, after=1) as follower:
            assert [event.number for event in await follower.next(10)][-1] == 8
            await run_in_thread(forgotten, pen, 12)
            assert await self.outcome(follower) == [-12]

    async def test_one_who_is_up_to_date_reads_on_from_memory(self, pen: Pen) -> None:
        async with follow(pen) as follower:
            await run_in_thread(speak, pen, 3)
            await until(lambda: feed_of(follower).end == 5)
            await run_in_thread(forgotten, pen, 6)
            assert await self.outcome(follower) == [2, 3, 4, 5]

    async def test_a_hint_of_events_that_are_gone_wakes_who_waits(
        self, pen: Pen, settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 60.0
        async with follow(pen) as follower:
            waiting = asyncio.ensure_future(self.outcome(follower))
            await run_in_thread(silently, pen)
            await run_in_thread(forgotten, pen, 6)
            hub()._hear(pubsub.Committed(pen.run.task, 5))
            assert await waiting == [-6]

    async def test_a_slice_after_a_gap_is_read_only_once(
        self, pen: Pen, monkeypatch: pytest.MonkeyPatch, reads: list[tuple[int, int]]
    ) -> None:
        monkeypatch.setattr(event_log, "SLICE", 3)
        async with follow(pen) as follower:
            await run_in_thread(silently, pen, 2)
            await run_in_thread(forgotten, pen, 3)
            reads.clear()
            await feed_of(follower).catch_up(4)
            assert len(reads) <= 2
            assert await self.outcome(follower) == [-3]

    async def test_the_poll_tells_who_waits_for_a_task_that_is_gone(
        self, pen: Pen, settings: Any
    ) -> None:
        settings.A2A_POLL_SECONDS = 0.05
        async with follow(pen) as follower:
            waiting = asyncio.ensure_future(self.outcome(follower))
            await until(lambda: hub()._feeds)
            await run_in_thread(Task.objects.filter(pk=pen.run.task).delete)
            assert await waiting == [-2]
            with pytest.raises(TaskNotFound):
                await follower.restart()

    @pytest.mark.django_db(transaction=True)
    async def test_a_purge_while_many_read_leaves_no_gap_untold(
        self, pen: Pen, settings: Any
    ) -> None:
        settings.A2A_FEED_EVENTS = 4
        settings.A2A_PURGE_BATCH = 3
        settings.A2A_POLL_SECONDS = 0.05
        settings.A2A_DATABASE_SECONDS = 30.0  # fifteen readers and a purge, on a busy machine
        await run_in_thread(speak, pen, 60)
        long_ago = timezone.now() - timedelta(days=40)
        await run_in_thread(Task.objects.filter(pk=pen.run.task).update, status_at=long_ago)
        await run_in_thread(Task.objects.filter(pk=pen.run.task).update, created_at=long_ago)

        async def read(after: int) -> tuple[int, list[int]]:
            async with follow(pen, after=after) as follower:
                return after, await self.outcome(follower)

        reading = [asyncio.ensure_future(read(after)) for after in range(0, 60, 4)]
        await run_in_thread(lambda: list(purge(RetentionLimits.of(0, 30))))
        for after, got in await asyncio.gather(*reading):
            whole = list(range(after + 1, 63))
            numbers = [number for number in got if number > 0]
            assert numbers == whole[: len(numbers)], "in order, from the next one on"
            assert numbers == whole or got[-1] < 0, "or told that some are missing"
