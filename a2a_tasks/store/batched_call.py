"""Group commit: transactions that arrive during a flush are written together by the next flush.

An idle store writes at once. A busy store writes many items in one statement, one commit and one job of a thread.
Items never wait for a timer, only for the previous flush.
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
#: A function that runs work in the store's threads.
Run = Callable[..., Awaitable[Any]]
Work = Callable[[list[T]], list[R | Exception]]
#: A function that returns the bytes of an item.
Size = Callable[[T], int]
#: Marks an item as a repetition.
Again = Callable[[T], object]
#: Maximum number of items of one flush, and maximum bytes of a flush of several items.
MAX_COUNT, MAX_BYTES = 64, 1024 * 1024
#: Maximum number of concurrent flushes, for small and for large items.
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
            # Not in the context of the first caller: the flush writes for other callers, too.
            flush = asyncio.create_task(self._flush(), context=contextvars.Context())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return future

    async def _flush(self) -> None:
        try:
            while self._waiting:
                limit = self._count_fitting() if len(self._waiting) > 1 else 1
                taken, self._waiting = self._waiting[:limit], self._waiting[limit:]
                await self._together(taken)
        finally:
            self._free += 1

    def _count_fitting(self) -> int:
        """Return the number of waiting items for the next flush."""
        sizes = itertools.accumulate(self._size(item) for item, _ in self._waiting[:MAX_COUNT])
        return max(1, sum(size <= MAX_BYTES for size in sizes))

    def _may_be_of_one(self, fault: Exception) -> bool:
        """Return whether one item may be at fault and each may be tried alone without being written twice.

        An error that is no Overloaded has rolled the transaction back: perhaps the database has refused one value.
        """
        if not isinstance(fault, Overloaded):
            return True
        return fault.blame is not Blame.NOBODY and (fault.undone or self._again is not None)

    async def _together(self, taken: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._run(self._work, [item for item, _ in taken])
        except Exception as fault:  # noqa: BLE001 - every waiting caller gets it
            if len(taken) > 1 and self._may_be_of_one(fault):
                for one in taken:
                    if self._again:
                        self._again(one[0])
                    await self._together([one])
                return
            results = [fault] * len(taken)
        for (_, future), result in zip(taken, results, strict=True):
            if future.done():  # the caller was cancelled; its item was written all the same
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class BatchedCall(Generic[T, R]):
    """A function of many items that is called with one: `await group(item)`.

    `work` gets a list of items, and returns the result or the exception of each; it is one transaction. `run` is `run_in_thread` or `run_to_completion`. Items that are large by their `size` in bytes are
    written one by one, and do not delay small ones.

    If a flush of several items fails, each is tried alone, if one of them may be at fault, and if it is certain that
    nothing was written or `again` is given. `again` marks an item as a repetition, which `work` recognises.
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
    """Mark nothing: the work is idempotent."""


def one_by_one(
    work: Callable[[list[T]], list[R | Exception]], items: Sequence[T]
) -> list[R | Exception]:
    """Do the work with each item alone, after one of them failed the whole batch. Call it in the store's thread.

    If the database goes away in the middle, items that were written keep their results: with an error, their callers
    would write them again. Items that were not tried yet get an Overloaded of their own.
    """
    results: list[R | Exception] = []
    for item in items:
        try:
            results += run_here(work, [item])
        except Overloaded as away:
            results.append(away)
            break
    return results + [Overloaded.away(undone=True) for _ in items[len(results) :]]
