"""Back-pressure: how many requests wait for the database at once, and how many runs for a process to carry them.

Whoever comes to a full line is told at once to come again, instead of waiting in memory for an answer that comes too
late. What runs say themselves does not stand in this line; `A2A_RUN_SLOTS` bounds it. See docs/decisions/0085.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import runs
from a2a_tasks.store.hop import hop

__all__ = ["backlog", "in_line", "place_in_line"]

T = TypeVar("T")
#: Seconds until whoever was sent away should come again: to a line that moves, and to a queue of runs.
SOON, LATER = "1", "5"
#: Seconds between two looks at a queue of runs.
LOOK_SECONDS = 1.0

_waiting = 0


@contextlib.contextmanager
def place_in_line() -> Iterator[None]:
    """A place among the requests of this process that wait for the database. Raises Overloaded if none is free."""
    global _waiting  # noqa: PLW0603 - one line a process
    if _waiting >= int(conf.MAX_WAITING):
        raise Overloaded("Too many requests are waiting", retry_after=SOON)
    _waiting += 1
    try:
        yield
    finally:
        _waiting -= 1


def in_line(operation: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """The operation, from its first to its last moment with a place in the line."""

    @functools.wraps(operation)
    async def waiting(*args: Any, **kwargs: Any) -> T:
        with place_in_line():
            return await operation(*args, **kwargs)

    return waiting


class Backlog:
    """The runs that wait in the queues: looked at once a second, and counted on from there."""

    def __init__(self) -> None:
        #: By queue: when it was looked at, and how many have been there since at the most.
        self._known: dict[str, tuple[float, int]] = {}

    async def admit(self, queue: str) -> None:
        """Count a run that is about to wait in the queue. Raises Overloaded when there are A2A_MAX_QUEUED already."""
        most = int(conf.MAX_QUEUED)
        if not most:
            return
        looked, _ = self._known.setdefault(queue, (-LOOK_SECONDS, 0))
        if time.monotonic() - looked >= LOOK_SECONDS:
            await self._look(queue, most)
        looked, count = self._known[queue]
        if count >= most:
            raise Overloaded("Too many runs are waiting for this agent", retry_after=LATER)
        self._known[queue] = (looked, count + 1)

    async def _look(self, queue: str, most: int) -> None:
        """Who comes meanwhile goes by what was known, and is counted."""
        now, (_, before) = time.monotonic(), self._known[queue]
        self._known[queue] = (now, before)
        found = await hop(runs.waiting, queue, most)
        _, since = self._known[queue]
        self._known[queue] = (now, found + since - before)


backlog = Backlog()
