"""A stream as a binding sends it: one first item, then the events of a follower, nothing of any wire."""

from __future__ import annotations

from collections.abc import AsyncIterator

from a2a_tasks.protocol.dialects import Dialect, Subject
from a2a_tasks.protocol.lifecycle import EventKind, Recorded
from a2a_tasks.protocol.values import Raw, Task
from a2a_tasks.streaming.follow import Follower

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
    ) -> None:
        self.subject = subject
        #: The Task (or the one direct Message) to begin with; None when a client resumes after an event.
        self.first, self.number = first, number
        self.follower = follower
        self._heard = heard or []

    async def close(self) -> None:
        """The stream has ended, or the client is gone: let go of the log."""
        await self.follower.close()

    def begun(self, dialect: Dialect) -> list[bytes]:
        """What the stream begins with, as a dialect says it; nothing for a client that resumes."""
        if self.first is None:
            return []
        ended = self.follower.done and not self._heard
        return dialect.first(self.subject, self.first, ended=ended)

    def encoded(self, dialect: Dialect, event: Recorded) -> bytes:
        """An event as a dialect says it, encoded once for all who follow the task in this process.

        Where artifacts are counted, each stream counts for itself, so it must see every event.
        """
        feed = self.follower.feed
        final = self.follower.done and event.number == self.follower.number
        if feed is None or dialect.manners.index:
            return dialect.event(self.subject, event, final=final)
        return feed.encoded(dialect, self.subject, event, final=final)

    async def batches(self, idle_seconds: float) -> AsyncIterator[list[Recorded]]:
        """Events to be shown, in order, to the end of the stream; an empty list after a quiet while."""
        if isinstance(self.first, Raw):
            return
        if self._heard:
            yield self._shown(self._heard)
        while not self.follower.done:
            events = await self.follower.next(idle_seconds)
            shown = self._shown(events)
            if shown or not events:
                yield shown

    @staticmethod
    def _shown(events: list[Recorded]) -> list[Recorded]:
        return [event for event in events if event.kind in SHOWN]
