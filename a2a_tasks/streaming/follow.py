"""One reader of a task's log: it keeps a number, and gets what comes after it, in order, once."""

from __future__ import annotations

from collections.abc import Callable

from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.streaming.hub import Feed, hub

__all__ = ["Follower"]


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
        """Events after those given before; none if `seconds` brought nothing, or after the end."""
        feed = self.feed
        if self.done or feed is None:
            return []
        while not (events := await feed.after(self.number)):
            if not await feed.changed(seconds):
                return []
        return self._up_to_the_end(events)

    def _up_to_the_end(self, events: list[Recorded]) -> list[Recorded]:
        for index, event in enumerate(events):
            if self._until(event):
                self.done = True
                events = events[: index + 1]
                break
        if events:
            self.number = events[-1].number
        return events
