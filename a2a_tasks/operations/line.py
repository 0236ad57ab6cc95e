"""Back-pressure: how many requests wait for the database at once, how many runs for a process to carry them, and
how much of that, and of open streams, is one tenant's.

Whoever comes to a full line is told at once to come again, instead of waiting in memory for an answer that comes too
late. What runs say themselves does not stand in this line; `A2A_RUN_SLOTS` bounds it. See docs/decisions/0085.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from a2a_tasks.conf import conf
from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.errors import Overloaded, RateLimited, RequestError
from a2a_tasks.store import runs
from a2a_tasks.store.hop import hop
from a2a_tasks.streaming.stream import EventStream

__all__ = ["backlog", "counted", "in_line", "place_in_line", "unfinished"]

T = TypeVar("T")
#: Seconds until whoever was sent away should come again: to a line that moves, and to a queue of runs.
SOON, LATER = "1", "5"
#: Seconds between two looks at a queue of runs.
LOOK_SECONDS = 1.0
#: Names a process remembers the counts of, before it forgets old ones.
MOST_KNOWN = 10_000

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
    """Runs that wait, or go on: looked at once a second, and counted on from there."""

    def __init__(
        self,
        look: Callable[[str, int], int],
        most: Callable[[], int],
        refusal: Callable[[], RequestError],
    ) -> None:
        """`look` counts, for a name, no further than to a number; `most` may be; `refusal` is told to who comes then."""
        self._count, self._most, self._refusal = look, most, refusal
        #: By name: when it was looked at, and how many have been there since at the most.
        self._known: dict[str, tuple[float, int]] = {}

    async def admit(self, name: str) -> None:
        """Count a run that is about to come. Raises the refusal when there are as many as may be."""
        most = self._most()
        if not most:
            return
        looked, _ = self._known.setdefault(name, (-LOOK_SECONDS, 0))
        if time.monotonic() - looked >= LOOK_SECONDS:
            await self._look(name, most)
        looked, count = self._known[name]
        if count >= most:
            raise self._refusal()
        self._known[name] = (looked, count + 1)

    async def _look(self, name: str, most: int) -> None:
        """Who comes meanwhile goes by what was known, and is counted."""
        now, (_, before) = time.monotonic(), self._known[name]
        if len(self._known) > MOST_KNOWN:
            self._known = {n: k for n, k in self._known.items() if now - k[0] < LOOK_SECONDS}
        self._known[name] = (now, before)
        found = await hop(self._count, name, most)
        _, since = self._known.get(name, (now, before))
        self._known[name] = (now, found + since - before)


def queued() -> Backlog:
    """The runs that wait in each queue."""
    return Backlog(
        runs.waiting,
        lambda: int(conf.MAX_QUEUED),
        lambda: Overloaded("Too many runs are waiting for this agent", retry_after=LATER),
    )


def begun() -> Backlog:
    """The unfinished runs of each tenant, or caller without one (`Caller.share`)."""
    return Backlog(
        runs.unfinished,
        lambda: int(conf.MAX_UNFINISHED_PER_TENANT),
        lambda: RateLimited("Too many of your tasks are unfinished", retry_after=LATER),
    )


backlog, unfinished = queued(), begun()


class Streams:
    """The streams that are open in this process, by `Caller.share`."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def open(self, share: str) -> None:
        """One more. Raises RateLimited if there are A2A_MAX_STREAMS_PER_TENANT already."""
        most = int(conf.MAX_STREAMS_PER_TENANT)
        if most and self._open[share] >= most:
            raise RateLimited("Too many of your streams are open", retry_after=LATER)
        self._open[share] += 1

    def close(self, share: str) -> None:
        """One less."""
        self._open[share] -= 1
        if not self._open[share]:
            del self._open[share]


streams = Streams()


def counted(
    operation: Callable[..., Awaitable[EventStream]],
) -> Callable[..., Awaitable[EventStream]]:
    """The operation, whose stream counts among its caller's until it is closed."""

    @functools.wraps(operation)
    async def opened(request: Any, call: Call) -> EventStream:
        share = call.caller.share
        streams.open(share)
        try:
            stream = await operation(request, call)
        except BaseException:
            streams.close(share)
            raise
        stream.on_close(functools.partial(streams.close, share))
        return stream

    return opened
