"""Following one task: a reader of its log, and the stream that a binding sends; independent of the bindings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from a2a_tasks.protocol.dialects import Dialect, Subject
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.files import Link, in_answer, in_event, refers
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.values import Raw, Task
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.tasks import FoundTask, find_by_key
from a2a_tasks.streaming.event_buffer import EventsRemoved, TaskEventBuffer, hub

__all__ = ["EventReader", "EventStream", "EventsRemoved", "find_next_sign"]

#: The signs of life of silent streams come at common times, so many in each period: a process wakes for all of them
#: together, and not for each.
TIMES = 16
SHOWN = {EventKind.STATUS, EventKind.ARTIFACT}


def find_next_sign(now: float, idle_seconds: float | None) -> float | None:
    """Return the time of the next sign of life of a stream: a common one, at most `idle_seconds` from now; None = none."""
    if not idle_seconds:
        return None
    step = idle_seconds / TIMES
    return (now + idle_seconds) // step * step


class EventReader:
    """A reader of one task's log: it stores a number, and gets each event after it once, in order.

    Use: `await EventReader.open(...)`, then `next` until `done`, then `close`. A waiting reader holds no thread and no
    database connection.
    """

    __slots__ = ("_until", "done", "feed", "number")

    def __init__(
        self, feed: TaskEventBuffer | None, after: int, until: Callable[[LogEvent], bool]
    ) -> None:
        self.feed = feed
        self.number, self.done = after, False
        self._until = until

    @classmethod
    async def open(
        cls,
        task: int,
        *,
        after: int,
        until: Callable[[LogEvent], bool],
        fresh: bool = False,
        over: bool = False,
    ) -> EventReader:
        """Open a reader of the events after a number, up to the first for which `until` is true.

        `fresh`: see `Hub.open`. `over`: the end was reached already, no events will come.
        """
        if over:
            follower = cls(None, after, until)
            follower.done = True
            return follower
        return cls(await hub().open(task, known=after, fresh=fresh), after, until)

    async def close(self) -> None:
        """Release the feed; a second call does nothing."""
        feed, self.feed = self.feed, None
        if feed is not None:
            await hub().release(feed)

    async def next(self, seconds: float | None = None) -> list[LogEvent]:
        """Return the next events; none if none came within `seconds`, or after the end.

        Raises EventsRemoved if retention removed them: then call `restart`.
        """
        feed = self.feed
        if self.done or feed is None:
            return []
        while not (events := await feed.after(self.number)):
            if not await feed.wait_changed(seconds):
                return []
        return self._up_to_the_end(events)

    async def restart(self) -> FoundTask:
        """Return the present task, and continue after its last event, past the removed ones. Raises TaskNotFound."""
        found = await run_in_thread(find_by_key, self.feed.task) if self.feed else None
        if found is None:
            raise TaskNotFound
        self.number, self.done = found.last_event, found.state in TERMINAL
        return found

    def _up_to_the_end(self, events: list[LogEvent]) -> list[LogEvent]:
        for index, event in enumerate(events):
            if self._until(event):
                self.done = True
                events = events[: index + 1]
                break
        if events:
            self.number = events[-1].number
        return events


class EventStream:
    """The answer to SendStreamingMessage and SubscribeToTask. It must be closed when the client disconnects."""

    def __init__(
        self,
        *,
        subject: Subject,
        first: Task | Raw | None,
        number: int,
        follower: EventReader,
        heard: list[LogEvent] | None = None,
        removed: int = 0,
        shows_tools: bool = False,
    ) -> None:
        self.subject = subject
        #: The Task (or the direct Message) at the start; None if a client resumes after an event.
        self.first, self.number = first, number
        self.follower = follower
        #: A function from a file of the task to a URL for this client; the code that answers the client sets it.
        self.link: Link | None = None
        #: If not 0, the client asked for removed events: those before this number. It gets the Task instead.
        self.removed = removed
        #: Called with the first event after the start.
        self.on_first_event: Callable[[], None] | None = None
        self._shown = {*SHOWN, EventKind.TOOL} if shows_tools else SHOWN
        self._heard = heard or []
        self._on_close: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        """Register a callback for the end of the stream; it is called once."""
        self._on_close.append(callback)

    async def close(self) -> None:
        """End the stream: call the callbacks and release the feed."""
        while self._on_close:
            self._on_close.pop()()
        await self.follower.close()

    def take_first(self) -> Task | Raw | None:
        """Return the Task at the start, once: it may be large, and the stream may last for hours."""
        first = self.first
        if not isinstance(first, Raw):
            self.first = None
        return first

    def encode_start(self, dialect: Dialect) -> list[bytes]:
        """Return the start of the stream in a dialect, once; nothing for a client that resumes."""
        first = self.take_first()
        if first is None:
            return []
        ended = self.follower.done and not self._heard
        first = first if self.link is None else in_answer(first, self.link)
        return dialect.first(self.subject, first, ended=ended)

    def encode(self, dialect: Dialect, event: LogEvent) -> bytes:
        """Return an event in a dialect, encoded once for all followers of the task in this process.

        In dialects with an artifact index, each stream counts for itself, so its own subject must see every event.
        """
        feed = self.follower.feed
        final = self.follower.done and event.number == self.follower.number
        if self.link is not None and refers(event.body):  # the links are this client's own
            return dialect.event(self.subject, in_event(event, self.link), final=final)
        if feed is None or dialect.features.index:
            return dialect.event(self.subject, event, final=final)
        return feed.encode(dialect, self.subject, event, final=final)

    async def batches(self, idle_seconds: float | None) -> AsyncIterator[list[LogEvent] | None]:
        """Yield the visible events in order, to the end of the stream; an empty list after at most `idle_seconds` without one.

        Events that this client does not see do not count. None: the next events were removed, and the stream must start again (`encode_start`, `removed`).
        """
        if isinstance(self.first, Raw):
            return
        if self._heard:
            yield self._list_shown(self._heard)
        loop = asyncio.get_running_loop()
        due = find_next_sign(loop.time(), idle_seconds)
        while not self.follower.done:
            try:
                events = await self.follower.next(due and max(0.0, due - loop.time()))
            except EventsRemoved as gap:
                await self._begin_again(gap)
                yield None
                due = find_next_sign(loop.time(), idle_seconds)
                continue
            shown = self._list_shown(events)
            if shown or not events:
                yield shown
                due = find_next_sign(loop.time(), idle_seconds)

    async def _begin_again(self, gap: EventsRemoved) -> None:
        found = await self.follower.restart()
        self.first, self.number, self.removed, self._heard = (
            found.view,
            found.last_event,
            gap.before,
            [],
        )

    def _list_shown(self, events: list[LogEvent]) -> list[LogEvent]:
        shown = [event for event in events if event.kind in self._shown]
        if shown and self.on_first_event is not None:
            self.on_first_event()
            self.on_first_event = None
        return shown
