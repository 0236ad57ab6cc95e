"""One listener and one read a process and task, however many follow it.

A Feed keeps the newest events of one followed task, in bounds of number and of bytes. Committed events of this process come in directly; for those of
others a hint says how far the log goes and the feed reads it. A follower keeps a number, not a queue: whoever falls
behind the feed's memory reads the log from its number. Every feed also polls, so lost hints only cost time. Where the
log has a gap, since retention removed events, a follower is told (`EventsRemoved`), never given what comes after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import weakref
from collections import deque
from collections.abc import Sized

from a2a_tasks import lifetime, wakeups
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.dialects import Dialect, Subject
from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.store import log
from a2a_tasks.store.hop import hop

__all__ = ["EventsRemoved", "Feed", "Hub", "hub"]

logger = logging.getLogger(__name__)
#: Bytes that one feed keeps at most, and those that all feeds of a hub keep together, which they share evenly.
FEED_BYTES, HUB_BYTES = 8 * 1024 * 1024, 128 * 1024 * 1024
#: Bytes an event costs beside its body.
EVENT_BYTES = 256
_blind = Outage(logger, "no look at followed tasks")


class EventsRemoved(Exception):
    """Events a follower has not seen were removed by retention: all before number `before`."""

    def __init__(self, before: int) -> None:
        super().__init__(f"events before {before} were removed")
        self.before = before


def _settle(waiter: asyncio.Future[bool], result: bool) -> None:
    if not waiter.done():
        waiter.set_result(result)


class Feed:
    """The newest events of one task, in this process."""

    def __init__(self, task: int, known: int, among: Sized = ()) -> None:
        self.task = task
        #: The feeds of the hub, between which the bytes are shared.
        self._among = among
        #: How many read it, and how often a channel was subscribed to for it.
        self.followers = self.subscribed = 0
        #: Events up to here are in `tail` or older than it; nothing newer was seen.
        self.end = known
        #: The task itself was removed: nothing will come.
        self.gone = False
        self._tail: deque[Recorded] = deque()
        self._most = int(conf.FEED_EVENTS)
        self._reading = asyncio.Lock()
        self._asked = False
        self._waiting: set[asyncio.Future[bool]] = set()
        #: By event, and dialect with `final`.
        self._frames: dict[int, dict[tuple[Dialect, bool], bytes]] = {}
        #: What the tail costs, with its frames.
        self._bytes = 0

    def push(self, events: list[Recorded]) -> None:
        """Take events in; those that do not follow what is known are left to a read."""
        fresh = [event for event in events if event.number > self.end]
        if not fresh or fresh[0].number != self.end + 1:
            return
        self._tail.extend(fresh)
        self._bytes += sum(EVENT_BYTES + event.size for event in fresh)
        self.end = fresh[-1].number
        self._forget_oldest()
        self._wake()

    def _forget_oldest(self) -> None:
        """Keep to the bounds. Not even the newest event is kept if it is too large: its followers read the log."""
        room = min(FEED_BYTES, HUB_BYTES // max(1, len(self._among)))
        while self._tail and (len(self._tail) > self._most or self._bytes > room):
            event = self._tail.popleft()
            frames = self._frames.pop(event.number, {})
            self._bytes -= EVENT_BYTES + event.size + sum(map(len, frames.values()))

    def _wake(self) -> None:
        for waiter in self._waiting:
            _settle(waiter, result=True)
        self._waiting.clear()

    async def changed(self, seconds: float | None) -> bool:
        """Wait until events came in, at most `seconds`; False if none did."""
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
        """Read what the log has beyond what is known; calls during a read share the next one.

        `last`: so far the log is known to go. If it does not come so far, its events were removed.
        """
        self._asked = True
        async with self._reading:
            while self._asked:
                self._asked = False
                while events := await hop(log.read_after, self.task, self.end):
                    self._skip_to(events[0].number)
                    self.push(events)
                    if log.all_there_was(events):
                        break
            failpoint("stream.caught_up")
            if self.end < last:
                await self._find_the_beginning()

    async def _find_the_beginning(self) -> None:
        begins = await hop(log.beginning, self.task)
        if begins is None:
            self.lose()
        else:
            self._skip_to(begins)

    def _skip_to(self, number: int) -> None:
        """The log goes on with this number: what is missing between, no follower will get from here."""
        if number <= self.end + 1:
            return
        self._tail.clear()
        self._frames.clear()
        self._bytes = 0
        self.end = number - 1
        self._wake()

    def lose(self) -> None:
        """The task was removed: let those who wait know."""
        self.gone = True
        self._wake()

    async def after(self, number: int) -> list[Recorded]:
        """Events after a number, from memory or, for one far behind, from the log; may be none.

        As many as a read of the log would give: a client that takes them slowly holds no more. Raises EventsRemoved
        if the next one is not there any more.
        """
        if number >= self.end:
            if self.gone:
                raise EventsRemoved(self.end + 1)
            return []
        first = self.end - len(self._tail) + 1
        if number + 1 < first:
            return await self._read(number)
        newest_first = itertools.islice(reversed(self._tail), self.end - number)
        events, room = list(newest_first)[::-1], log.SLICE_BYTES
        for count, event in enumerate(events, 1):
            room -= event.size
            if room <= 0:
                return events[:count]
        return events

    async def _read(self, number: int) -> list[Recorded]:
        """Events after a number that is known not to be the last."""
        events = await hop(log.read_after, self.task, number)
        if not events or events[0].number != number + 1:
            raise EventsRemoved(events[0].number if events else self.end + 1)
        return events

    def encoded(self, dialect: Dialect, subject: Subject, event: Recorded, *, final: bool) -> bytes:
        """The event as a dialect says it, encoded once for all who follow."""
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
        self._feeds: dict[int, Feed] = {}
        self._loop = asyncio.get_running_loop()
        self._elsewhere = wakeups.Subscriber(self._hear)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(wakeups.listen(self._heard))
        self._poller = asyncio.create_task(self._poll())
        self._tasks: set[asyncio.Task[None]] = set()
        lifetime.on_stop(self.close)

    def _heard(self, hint: wakeups.Hint) -> None:
        """Any thread: bring the hint to the loop, if anybody here follows that task."""
        if isinstance(hint, wakeups.Committed) and hint.task in self._feeds:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody follows any more
                self._loop.call_soon_threadsafe(self._hear, hint)

    def _hear(self, hint: wakeups.Hint) -> None:
        if not isinstance(hint, wakeups.Committed) or (feed := self._feeds.get(hint.task)) is None:
            return
        feed.push(list(hint.events))
        if feed.end < hint.last:
            self._spawn(feed, hint.last)

    def _spawn(self, feed: Feed, last: int = 0) -> None:
        task = asyncio.create_task(self._catch_up(feed, last))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up(self, feed: Feed, last: int = 0) -> None:
        try:
            await feed.catch_up(last)
        except Exception as fault:  # noqa: BLE001 - the poll tries again
            logger.warning("task %s could not be read: %r", feed.task, fault.__cause__ or fault)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(conf.POLL_SECONDS)
            if not self._feeds:
                continue
            followed = list(self._feeds.values())
            try:
                numbers = await hop(log.last_numbers, [feed.task for feed in followed])
            except Exception as fault:  # noqa: BLE001 - whatever it is, the next look is taken
                _blind.count(fault.__cause__ or fault)
                continue
            for feed in followed:
                last = numbers.get(feed.task)
                if last is None:
                    feed.lose()
                elif feed.end < last:
                    self._spawn(feed, last)

    async def open(self, task: int, *, known: int, fresh: bool = False) -> Feed:
        """The feed of a task, for one more follower, beginning after event `known`. Release it in the end.

        `fresh` promises that nobody but this process can have written since `known` was read.
        """
        feed = self._feeds.get(task)
        if feed is None:
            feed = self._feeds[task] = Feed(task, known, self._feeds)
        feed.followers += 1
        if fresh:
            return feed
        try:
            feed.subscribed += 1
            await self._elsewhere.follow(wakeups.channel(task))
            await self._catch_up(feed)
        except BaseException:
            await self.release(feed)
            raise
        return feed

    async def release(self, feed: Feed) -> None:
        """One follower of a feed less; the last one takes it with it."""
        feed.followers -= 1
        if feed.followers:
            return
        if self._feeds.get(feed.task) is feed:
            del self._feeds[feed.task]
        for _ in range(feed.subscribed):
            await self._elsewhere.unfollow(wakeups.channel(feed.task))

    async def close(self) -> None:
        """Stop listening and polling."""
        self._stack.close()
        self._poller.cancel()
        await self._elsewhere.close()


_hubs: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = weakref.WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running loop."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
    return found
