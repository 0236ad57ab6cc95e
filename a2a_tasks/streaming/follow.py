"""One reader of a task's log: it keeps a number, and gets what comes after it, in order, once."""

from __future__ import annotations

from collections.abc import Callable

from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.store.hop import hop
from a2a_tasks.store.tasks import Found, find_by_key
from a2a_tasks.streaming.hub import EventsRemoved, Feed, hub

__all__ = ["EventsRemoved", "Follower"]


class Follower:
    """`await Follower.open(...)`, then `next` until `done`, then `close`.

    Holds no thread and no database connection while it waits.
    """

    __slots__ = ("_until", "done", "feed", "number")

    def __init__(self, feed: Feed | None, after: int, until: Callable[[Recorded], bool]) -> None:
        self.feed = feed
        self.number, self.done = after, False
        self._until = until

    @classmethod
    async def open(
        cls,
        task: int,
        *,
        after: int,
        until: Callable[[Recorded], bool],
        fresh: bool = False,
        over: bool = False,
    ) -> Follower:
        """A reader of the events after a number, to the first of which `until` is true; see `Hub.open` for `fresh`.

        `over`: the end has been reached already, nothing will come.
        """
        if over:
            follower = cls(None, after, until)
            follower.done = True
            return follower
        return cls(await hub().open(task, known=after, fresh=fresh), after, until)

    async def close(self) -> None:
        """Let go of the log; again does nothing."""
        feed, self.feed = self.feed, None
        if feed is not None:
            await hub().release(feed)

    async def next(self, seconds: float | None = None) -> list[Recorded]:
        """Events after those given before; none if `seconds` brought nothing, or after the end.

        Raises EventsRemoved if retention was quicker: then `restart`.
        """
        feed = self.feed
        if self.done or feed is None:
            return []
        while not (events := await feed.after(self.number)):
            if not await feed.changed(seconds):
                return []
        return self._up_to_the_end(events)

    async def restart(self) -> Found:
        """Go on from the task as it is, which is returned, instead of from events that are gone. Raises TaskNotFound."""
        found = await hop(find_by_key, self.feed.task) if self.feed else None
        if found is None:
            raise TaskNotFound
        self.number, self.done = found.last_event, found.state in TERMINAL
        return found

    def _up_to_the_end(self, events: list[Recorded]) -> list[Recorded]:
        for index, event in enumerate(events):
            if self._until(event):
                self.done = True
                events = events[: index + 1]
                break
        if events:
            self.number = events[-1].number
        return events
