"""One reader of a task's log: it keeps a number, and gets what comes after it, in order, once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType

from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.streaming.hub import Feed, hub

__all__ = ["Follower"]


class Follower:
    """`async with Follower(...)`, then `next` until `done`. Holds no thread and no database connection while idle."""

    def __init__(
        self,
        task: int,
        *,
        after: int,
        until: Callable[[Recorded], bool],
        fresh: bool = False,
    ) -> None:
        self.task, self.number = task, after
        self.done = False
        self._until, self._fresh = until, fresh
        self._stack = contextlib.AsyncExitStack()
        self.feed: Feed

    async def __aenter__(self) -> Follower:
        opened = hub().feed(self.task, known=self.number, fresh=self._fresh)
        self.feed = await self._stack.enter_async_context(opened)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the log."""
        await self._stack.aclose()

    async def next(self, timeout: float | None = None) -> list[Recorded]:  # noqa: ASYNC109 - a wait, not a limit
        """Events after those given before; none if `timeout` seconds brought nothing, or after the end."""
        if self.done:
            return []
        while not (events := await self.feed.after(self.number)):
            if not await self.feed.changed(timeout):
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
