"""Buffers of new events: one listener and one read per process and task, for any number of followers.

A TaskEventBuffer (a feed) keeps the newest events of one followed task, bounded in number and bytes. Events that this
process commits are pushed to it. For events of other processes, a hint contains the last number of the log, and the
feed reads up to it. The hub also polls, so a lost hint only costs time.

A follower stores a number, not a queue: if it falls behind the feed's memory, it reads the log from its number. If
retention removed events that it has not seen, it gets `EventsRemoved` instead of the events after the gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import weakref
from collections.abc import Sized

from a2a_tasks import process_lifetime, pubsub
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.dialects import Dialect, Subject
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.store import event_log
from a2a_tasks.store.db import run_in_thread

__all__ = ["EventsRemoved", "TaskEventBuffer", "Hub", "hub"]

logger = logging.getLogger(__name__)
#: Most bytes of one feed, and of all feeds of a hub together, which share them evenly.
FEED_BYTES, HUB_BYTES = 8 * 1024 * 1024, 128 * 1024 * 1024
#: Bytes of memory of an event without its body.
EVENT_BYTES = 256
_blind = ThrottledLogger(logger, "followed tasks could not be read")


class EventsRemoved(Exception):
    """Retention removed events that a follower has not seen: all before number `before`."""

    def __init__(self, before: int) -> None:
        super().__init__(f"events before {before} were removed")
        self.before = before


def _settle(waiter: asyncio.Future[bool], result: bool) -> None:
    if not waiter.done():
        waiter.set_result(result)


class TaskEventBuffer:
    """The newest events of one task, in this process."""

    def __init__(self, task: int, known: int, among: Sized = ()) -> None:
        self.task = task
        #: The feeds of the hub, which share its bytes.
        self._among = among
        #: Number of followers, and number of subscriptions to its channel.
        self.followers = self.subscribed = 0
        #: The last seen event: events up to it are in `tail`, or older than `tail`.
        self.end = known
        #: True if the task itself was removed: no events will come.
        self.gone = False
        #: The newest events, the oldest first. An empty deque takes 0.6 KiB, in every open stream.
        self._tail: list[LogEvent] = []
        self._most = int(conf.FEED_EVENTS)
        self._reading = asyncio.Lock()
        self._asked = False
        self._waiting: set[asyncio.Future[bool]] = set()
        #: Encoded events, by number, then by dialect and `final`.
        self._frames: dict[int, dict[tuple[Dialect, bool], bytes]] = {}
        #: Bytes of the tail, with its frames.
        self._bytes = 0

    def push(self, events: list[LogEvent]) -> None:
        """Append events; after a gap they are ignored, and a read of the log adds them later."""
        begun = self.end
        for event in events:
            if event.number == self.end + 1:
                self._tail.append(event)
                self._bytes += EVENT_BYTES + event.size
                self.end = event.number
        if self.end > begun:
            self._forget_oldest()
            self._wake()

    def _forget_oldest(self) -> None:
        """Enforce the bounds. Even the newest event is dropped if it is too large: its followers read the log."""
        room = min(FEED_BYTES, HUB_BYTES // max(1, len(self._among)))
        excess = max(0, len(self._tail) - self._most)
        for dropped, event in enumerate(self._tail):
            if dropped >= excess and self._bytes <= room:
                del self._tail[:dropped]
                return
            frames = self._frames.pop(event.number, {})
            self._bytes -= EVENT_BYTES + event.size + sum(map(len, frames.values()))
        self._tail.clear()

    def _wake(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(True)
        self._waiting.clear()

    async def wait_changed(self, seconds: float | None) -> bool:
        """Wait for new events, at most `seconds`; False if none came."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(waiter)
        alarm = None if seconds is None else loop.call_later(seconds, _settle, waiter, False)
        try:
            return await waiter
        finally:
            self._waiting.discard(waiter)
            if alarm is not None:
                alarm.cancel()

    async def catch_up(self, last: int = 0) -> None:
        """Read the new events of the log; calls during a read share the next read.

        `last`: the known last number of the log. If the log ends before it, its events were removed.
        """
        self._asked = True
        async with self._reading:
            while self._asked:
                self._asked = False
                while events := await run_in_thread(event_log.read_after, self.task, self.end):
                    self._skip_to(events[0].number)
                    self.push(events)
                    if event_log.all_there_was(events):
                        break
            failpoint("stream.caught_up")
            if self.end < last:
                await self._find_the_beginning()

    async def _find_the_beginning(self) -> None:
        begins = await run_in_thread(event_log.find_first_number, self.task)
        if begins is None:
            self.lose()
        else:
            self._skip_to(begins)

    def _skip_to(self, number: int) -> None:
        """Skip a gap in the log, which continues with this number: followers cannot get the events between."""
        if number <= self.end + 1:
            return
        self._tail.clear()
        self._frames.clear()
        self._bytes = 0
        self.end = number - 1
        self._wake()

    def lose(self) -> None:
        """Mark the task as removed, and wake the waiting followers."""
        self.gone = True
        self._wake()

    async def after(self, number: int) -> list[LogEvent]:
        """Return events after a number, from memory or, if it is far behind, from the log; maybe none.

        The amount is limited as for a read of the log, so that a slow client holds no more in memory. Raises
        EventsRemoved if the next event was removed.
        """
        if number >= self.end:
            if self.gone:
                raise EventsRemoved(self.end + 1)
            return []
        first = self.end - len(self._tail) + 1
        if number + 1 < first:
            return await self._read(number)
        newest_first = itertools.islice(reversed(self._tail), self.end - number)
        events, room = list(newest_first)[::-1], event_log.SLICE_BYTES
        for count, event in enumerate(events, 1):
            room -= event.size
            if room <= 0:
                return events[:count]
        return events

    async def _read(self, number: int) -> list[LogEvent]:
        """Read events after a number that is not the last."""
        events = await run_in_thread(event_log.read_after, self.task, number)
        if not events or events[0].number != number + 1:
            raise EventsRemoved(events[0].number if events else self.end + 1)
        return events

    def encode(self, dialect: Dialect, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        """Return the event in a dialect, encoded once for all followers."""
        if self.followers == 1 or event.number <= self.end - len(self._tail):
            return dialect.event(subject, event, final=final)
        frames = self._frames.setdefault(event.number, {})
        found = frames.get((dialect, final))
        if found is None:
            found = frames[dialect, final] = dialect.event(subject, event, final=final)
            self._bytes += len(found)
            self._forget_oldest()
        return found


class Hub:
    """The feeds of one event loop."""

    def __init__(self) -> None:
        self._feeds: dict[int, TaskEventBuffer] = {}
        self._loop = asyncio.get_running_loop()
        self._subscriber = pubsub.Subscriber(self._hear)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(pubsub.listen(self._on_hint, pubsub.Committed))
        self._poller = asyncio.create_task(self._poll())
        self._tasks: set[asyncio.Task[None]] = set()
        process_lifetime.on_stop(self.close)

    def _on_hint(self, hint: pubsub.Committed) -> None:
        """Pass a hint from any thread to the event loop, if the task has followers here."""
        if hint.task in self._feeds:
            with contextlib.suppress(RuntimeError):  # the loop is closed: there are no followers
                self._loop.call_soon_threadsafe(self._hear, hint)

    def _hear(self, hint: pubsub.Hint) -> None:
        if not isinstance(hint, pubsub.Committed) or (feed := self._feeds.get(hint.task)) is None:
            return
        feed.push(list(hint.events))
        if feed.end < hint.last:
            self._spawn(feed, hint.last)

    def _spawn(self, feed: TaskEventBuffer, last: int = 0) -> None:
        task = asyncio.create_task(self._catch_up(feed, last))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up(self, feed: TaskEventBuffer, last: int = 0) -> None:
        try:
            await feed.catch_up(last)
        except Overloaded as away:  # the poll tries again, also after any other failure
            _blind.warning(away.__cause__ or away)
        except Exception as fault:  # noqa: BLE001
            logger.warning("task %s could not be read: %r", feed.task, fault.__cause__ or fault)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(conf.POLL_SECONDS)
            if not self._feeds:
                continue
            known = {task: feed.end for task, feed in self._feeds.items()}
            try:
                ends = await run_in_thread(event_log.find_other_ends, known)
            except Exception as fault:  # noqa: BLE001 - after any failure the next poll follows
                _blind.warning(fault.__cause__ or fault)
                continue
            for task, last in ends.items():
                if (feed := self._feeds.get(task)) is None:
                    continue
                if last is None:
                    feed.lose()
                elif feed.end < last:
                    self._spawn(feed, last)

    async def open(self, task: int, *, known: int, fresh: bool = False) -> TaskEventBuffer:
        """Return the feed of a task for one more follower, which starts after event `known` and must release it.

        `fresh` promises that no other process can have written events since `known` was read.
        """
        feed = self._feeds.get(task)
        if feed is None:
            feed = self._feeds[task] = TaskEventBuffer(task, known, self._feeds)
        feed.followers += 1
        if fresh:
            return feed
        try:
            feed.subscribed += 1
            await self._subscriber.follow(pubsub.channel(task))
            await self._catch_up(feed)
        except BaseException:
            await self.release(feed)
            raise
        return feed

    async def release(self, feed: TaskEventBuffer) -> None:
        """Remove one follower of a feed; the feed ends with its last follower."""
        feed.followers -= 1
        if feed.followers:
            return
        if self._feeds.get(feed.task) is feed:
            del self._feeds[feed.task]
        for _ in range(feed.subscribed):
            await self._subscriber.unfollow(pubsub.channel(feed.task))

    async def is_followed(self, task: int) -> bool | None:
        """Return whether anybody follows a task, here or in another process; None if that cannot be told."""
        return task in self._feeds or await pubsub.has_subscribers(pubsub.channel(task))

    async def close(self) -> None:
        """Stop listening and polling."""
        self._stack.close()
        self._poller.cancel()
        await self._subscriber.close()


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        # Its tasks serve all followers: their log lines must not name the request of the first one.
        found = _hubs[loop] = contextvars.Context().run(Hub)
    return found
