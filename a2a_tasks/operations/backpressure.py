"""Back-pressure: limits on requests that wait for the database, on waiting runs, on each tenant's share, and on budgets.

At a limit, a request is refused at once with a time for the next try, instead of waiting in memory for an answer that
comes too late. Writes of runs are not counted here; `A2A_RUN_SLOTS` bounds them. See docs/decisions/0007.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import Overloaded, RateLimited, RequestError
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import Part
from a2a_tasks.store import runs
from a2a_tasks.store.budgets import find_spent, list_in_force, tell
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import Spender
from a2a_tasks.streaming.stream import EventStream

__all__ = [
    "check_budgets",
    "count_unheard",
    "limit_waiting",
    "queue_limit",
    "stream_limit",
    "tenant_limit",
    "weigh",
]

#: Seconds until a refused client may retry: for the database, and for a queue of runs.
DATABASE_RETRY_SECONDS, QUEUE_RETRY_SECONDS = "1", "5"
#: Seconds until a client may retry whom a budget refuses that never resets. An operator may allow more.
ENDLESS_SECONDS = 3600.0
#: Seconds between two counts of a queue of runs.
COUNT_SECONDS = 1.0
#: Maximum number of names whose counts a process remembers, before it forgets old ones.
MAX_NAMES = 10_000

#: Bytes that the waiting messages may take in memory, and those that a message may take whatever others do.
WAITING_BYTES, UNCOUNTED = 256 * 1024 * 1024, 128 * 1024
#: Bytes in memory of a byte of data, such as of `{"a":{}}`, when it is decoded.
DECODED = 28

_waiting = _bytes = 0


def weigh(parts: Iterable[Part]) -> int:
    """Return the bytes that these parts take in memory while their message is written: decoded, and as they are stored.

    They are stored as one text: an emoji makes all of it four times as large.
    """
    texts, data = list[str](), list[Any]()
    for part in parts:
        for value in (part.text, part.raw, part.url, part.data, part.metadata):
            if isinstance(value, str):
                texts.append(value)
            elif value:
                data.append(value)
    size = sum(map(sys.getsizeof, texts)) + sys.getsizeof(write([texts, data]).decode())
    return size + DECODED * len(write(data)) if data else size


@contextlib.contextmanager
def limit_waiting(*parts: Part) -> Iterator[None]:
    """Count one request that waits for the database until the block ends, and the bytes of the parts of its message.

    Raises Overloaded if too many wait, or too large ones. A message that is alone may have any size.
    """
    global _waiting, _bytes
    size = weigh(parts) if parts else 0
    too_large = _bytes and size > UNCOUNTED and _bytes + size > WAITING_BYTES
    if too_large or _waiting >= int(conf.MAX_WAITING):
        raise Overloaded("Too many requests are waiting", retry_after=DATABASE_RETRY_SECONDS)
    _waiting, _bytes = _waiting + 1, _bytes + size
    try:
        yield
    finally:
        _waiting, _bytes = _waiting - 1, _bytes - size


def count_unheard(parts: Iterable[Part]) -> Callable[[object], None]:
    """Count a message whose caller has left while it was being accepted, until the result is called."""
    global _waiting, _bytes
    size = weigh(parts)
    _waiting, _bytes = _waiting + 1, _bytes + size

    def end(_: object) -> None:
        global _waiting, _bytes
        _waiting, _bytes = _waiting - 1, _bytes - size

    return end


class CountLimit:
    """A limit on runs that wait or go on: read from the database once a second, and counted up in between."""

    def __init__(
        self,
        count: Callable[[str, int], int],
        limit: Callable[[], int],
        refusal: Callable[[], RequestError],
    ) -> None:
        """`count` counts the runs of a name up to a number; `limit` returns the maximum; `refusal` makes the error."""
        self._count, self._limit, self._refusal = count, limit, refusal
        #: By name: the time of the last count, and an upper bound of the runs since.
        self._counts: dict[str, tuple[float, int]] = {}

    async def admit(self, name: str) -> None:
        """Count a run that is about to start. Raises the refusal at the limit."""
        limit = self._limit()
        if not limit:
            return
        counted_at, _ = self._counts.setdefault(name, (-COUNT_SECONDS, 0))
        if time.monotonic() - counted_at >= COUNT_SECONDS:
            await self._recount(name, limit)
        counted_at, count = self._counts[name]
        if count >= limit:
            raise self._refusal()
        self._counts[name] = (counted_at, count + 1)

    async def _recount(self, name: str, limit: int) -> None:
        """Read the count again. Requests that come meanwhile use the old count, and increase it."""
        now, (_, before) = time.monotonic(), self._counts[name]
        if len(self._counts) > MAX_NAMES:
            self._counts = {n: k for n, k in self._counts.items() if now - k[0] < COUNT_SECONDS}
        self._counts[name] = (now, before)
        fresh = await run_in_thread(self._count, name, limit)
        _, since = self._counts.get(name, (now, before))
        self._counts[name] = (now, fresh + since - before)


def make_queue_limit() -> CountLimit:
    """Return the limit on the runs that wait in each queue."""
    return CountLimit(
        runs.count_waiting,
        lambda: int(conf.MAX_QUEUED),
        lambda: Overloaded(
            "Too many runs are waiting for this agent", retry_after=QUEUE_RETRY_SECONDS
        ),
    )


def make_tenant_limit() -> CountLimit:
    """Return the limit on the unfinished runs of each tenant, or caller without one (`Caller.quota_key`)."""
    return CountLimit(
        runs.count_unfinished,
        lambda: int(conf.MAX_UNFINISHED_PER_TENANT),
        lambda: RateLimited(
            "Too many of your tasks are unfinished", retry_after=QUEUE_RETRY_SECONDS
        ),
    )


queue_limit, tenant_limit = make_queue_limit(), make_tenant_limit()


async def check_budgets(agent: str, caller: Caller) -> None:
    """Check that no budget refuses the message. Raises RateLimited with the time until the budget resets, Overloaded.

    A budget that pauses work or asks an operator refuses no message, unless an operator has refused to allow more. The
    sums of tasks are looked at by the run.
    """
    spender = Spender(agent, caller.tenant, caller.principal)
    if not list_in_force(spender):
        return
    for spent in await run_in_thread(find_spent, spender):
        if spent.refuses:
            text = tell(spent)
            raise RateLimited.until(spent.seconds_left if spent.until else ENDLESS_SECONDS, text)


class StreamLimit:
    """The number of open streams in this process, by `Caller.quota_key`."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    async def open(
        self,
        operation: Callable[[Any, CallContext], Awaitable[EventStream]],
        request: Any,
        call: CallContext,
    ) -> EventStream:
        """Open the stream of an operation; it counts until it is closed.

        Raises RateLimited if the tenant has A2A_MAX_STREAMS_PER_TENANT open, and what the operation raises.
        """
        quota_key, limit = call.caller.quota_key, int(conf.MAX_STREAMS_PER_TENANT)
        if limit and self._open[quota_key] >= limit:
            raise RateLimited("Too many of your streams are open", retry_after=QUEUE_RETRY_SECONDS)
        self._open[quota_key] += 1
        try:
            stream = await operation(request, call)
        except BaseException:
            self._close(quota_key)
            raise
        stream.on_close(functools.partial(self._close, quota_key))
        return stream

    def _close(self, quota_key: str) -> None:
        self._open[quota_key] -= 1
        if not self._open[quota_key]:
            del self._open[quota_key]


stream_limit = StreamLimit()
