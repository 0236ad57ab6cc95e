"""A stream as a binding sends it: one first item, then the events of a follower, nothing of any wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from a2a_tasks.protocol.dialects import Dialect, Subject
from a2a_tasks.protocol.files import Link, in_answer, in_event, refers
from a2a_tasks.protocol.lifecycle import EventKind, Recorded
from a2a_tasks.protocol.values import Raw, Task
from a2a_tasks.streaming.follow import EventsRemoved, Follower

__all__ = ["EventStream"]

SHOWN = (EventKind.STATUS, EventKind.ARTIFACT)


class EventStream:
    """What SendStreamingMessage and SubscribeToTask answer with. Close it when the client is gone."""

    def __init__(
        self,
        *,
        subject: Subject,
        first: Task | Raw | None,
        number: int,
        follower: Follower,
        heard: list[Recorded] | None = None,
        removed: int = 0,
    ) -> None:
        self.subject = subject
        #: The Task (or the one direct Message) to begin with; None when a client resumes after an event.
        self.first, self.number = first, number
        self.follower = follower
        #: From a file of the task to a URL for this client; set by who answers it.
        self.link: Link | None = None
        #: If not 0, the client asked for events that are gone: those before this number. It gets the Task instead.
        self.removed = removed
        self._heard = heard or []
        self._on_close: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        """Call this when the stream is closed, once."""
        self._on_close.append(callback)

    async def close(self) -> None:
        """The stream has ended, or the client is gone: let go of the log."""
        while self._on_close:
            self._on_close.pop()()
        await self.follower.close()

    def begun(self, dialect: Dialect) -> list[bytes]:
        """What the stream begins with, as a dialect says it; nothing for a client that resumes."""
        if self.first is None:
            return []
        ended = self.follower.done and not self._heard
        first = self.first if self.link is None else in_answer(self.first, self.link)
        return dialect.first(self.subject, first, ended=ended)

    def encoded(self, dialect: Dialect, event: Recorded) -> bytes:
        """An event as a dialect says it, encoded once for all who follow the task in this process.

        Where artifacts are counted, each stream counts for itself, so it must see every event.
        """
        feed = self.follower.feed
        final = self.follower.done and event.number == self.follower.number
        if self.link is not None and refers(event.body):  # the links are this client's own
            return dialect.event(self.subject, in_event(event, self.link), final=final)
        if feed is None or dialect.manners.index:
            return dialect.event(self.subject, event, final=final)
        return feed.encoded(dialect, self.subject, event, final=final)

    async def batches(self, idle_seconds: float) -> AsyncIterator[list[Recorded] | None]:
        """Events to be shown, in order, to the end of the stream; an empty list after a quiet while.

        None: events that should have come next were removed, and the stream has to begin again (`begun`, `removed`).
        """
        if isinstance(self.first, Raw):
            return
        if self._heard:
            yield self._shown(self._heard)
        while not self.follower.done:
            try:
                events = await self.follower.next(idle_seconds)
            except EventsRemoved as gap:
                await self._begin_again(gap)
                yield None
                continue
            shown = self._shown(events)
            if shown or not events:
                yield shown

    async def _begin_again(self, gap: EventsRemoved) -> None:
        found = await self.follower.restart()
        self.first, self.number, self.removed, self._heard = (
            found.view,
            found.last_event,
            gap.before,
            [],
        )

    @staticmethod
    def _shown(events: list[Recorded]) -> list[Recorded]:
        return [event for event in events if event.kind in SHOWN]
