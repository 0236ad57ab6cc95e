"""Group commit: transactions asked for while one is under way go together in the next.

An idle store writes at once; a busy one writes many in one statement, one commit and one job of a thread. Nobody waits for a
timer, only for the flush before.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.store.db import run_here, run_in_thread

__all__ = ["BatchedCall", "needs_no_mark", "one_by_one"]

T = TypeVar("T")
R = TypeVar("R")
#: A function that takes work to the store's threads.
Run = Callable[..., Awaitable[Any]]
Work = Callable[[list[T]], list[R | Exception]]
#: A function that returns the bytes of an item.
Size = Callable[[T], int]
#: Marks an item as a repetition.
Again = Callable[[T], object]
#: Most items of one flush, and most bytes of all but one.
MAX_COUNT, MAX_BYTES = 64, 1024 * 1024
#: Flushes under way at a time, and those of large items.
LANES, LARGE_LANES = 2, 1


class _Queue(Generic[T, R]):
    """The items that wait in one event loop."""

    def __init__(
        self, work: Work[T, R], run: Run, size: Size[T], again: Again[T] | None, lanes: int
    ) -> None:
        self._work, self._run, self._size, self._again = work, run, size, again
        self._free = lanes
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._flushes: set[asyncio.Task[None]] = set()

    def put(self, item: T) -> asyncio.Future[R]:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._free:
            self._free -= 1
            # Not in the context of whoever happens to come first: it writes for others, too.
            flush = asyncio.create_task(self._flush(), context=contextvars.Context())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return future

    async def _flush(self) -> None:
        try:
            while self._waiting:
                limit = self._count_fitting()
                taken, self._waiting = self._waiting[:limit], self._waiting[limit:]
                await self._together(taken)
        finally:
            self._free += 1

    def _count_fitting(self) -> int:
        """Return the number of waiting items that go together."""
        sizes = itertools.accumulate(self._size(item) for item, _ in self._waiting[:MAX_COUNT])
        return max(1, sum(size <= MAX_BYTES for size in sizes))

    def _may_be_of_one(self, fault: Exception) -> bool:
        """May it be the fault of one item, and may each be tried alone? Not what would be written twice."""
        if not isinstance(fault, Overloaded) or fault.blame is Blame.NOBODY:
            return False
        return fault.undone or self._again is not None

    async def _together(self, taken: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._run(self._work, [item for item, _ in taken])
        except Exception as fault:  # noqa: BLE001 - it belongs to everybody who waits
            if len(taken) > 1 and self._may_be_of_one(fault):
                for one in taken:
                    if self._again:
                        self._again(one[0])
                    await self._together([one])
                return
            results = [fault] * len(taken)
        for (_, future), result in zip(taken, results, strict=True):
            if future.done():  # whoever asked has gone; it was done all the same
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class BatchedCall(Generic[T, R]):
    """A function of many, called with one: `await group(item)`.

    `work` gets a list of items and returns for each its result or its exception; what it raises, all get. It is run
    by `run_in_thread`, or by `run_to_completion`. By their `size` in bytes, large items go one by one, and keep no small ones waiting.

    Of several that fail, each is tried alone, if one of them may be at fault, and if it is certain that nothing was written
    or `again` is given. `again` marks an item as a repetition, which `work` recognises.
    """

    def __init__(
        self,
        work: Work[T, R],
        *,
        run: Run = run_in_thread,
        size: Size[T] = lambda _: 0,
        again: Again[T] | None = None,
    ) -> None:
        self._work, self._run, self._size, self._again = work, run, size, again
        self._queues: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[_Queue[T, R], _Queue[T, R]]
        ] = weakref.WeakKeyDictionary()

    async def __call__(self, item: T) -> R:
        loop = asyncio.get_running_loop()
        if loop not in self._queues:
            ways = (self._work, self._run, self._size, self._again)
            self._queues[loop] = _Queue(*ways, LANES), _Queue(*ways, LARGE_LANES)
        small, large = self._queues[loop]
        return await (large if self._size(item) > MAX_BYTES else small).put(item)


def needs_no_mark(item: object) -> None:
    """Mark nothing: to do it twice is the same as to do it once."""


def one_by_one(
    work: Callable[[list[T]], list[R | Exception]], items: Sequence[T]
) -> list[R | Exception]:
    """Do the work with each item alone, because one of them spoils it for all. For the thread that holds the transaction.

    If the database goes away in the middle, what was written until then keeps its results: told that nothing was written,
    whoever asked would write it again. What has not been tried yet gets an Overloaded of its own.
    """
    results: list[R | Exception] = []
    for item in items:
        try:
            results += run_here(work, [item])
        except Overloaded as away:
            results.append(away)
            break
    return results + [Overloaded.away(undone=True) for _ in items[len(results) :]]
