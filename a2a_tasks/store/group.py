"""Group commit: transactions asked for while one is under way go together in the next.

An idle store writes at once; a busy one writes many in one statement, one commit and one hop. Nobody waits for a
timer, only for the flush before.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.hop import hop, in_thread

__all__ = ["Group", "one_by_one"]

T = TypeVar("T")
R = TypeVar("R")
#: What takes work to the store's threads.
Run = Callable[..., Awaitable[Any]]
#: Most items of one flush.
MOST = 64
#: Flushes under way at a time.
LANES = 2


class _Queue(Generic[T, R]):
    """What waits in one event loop."""

    def __init__(self, work: Callable[[list[T]], list[R | Exception]], run: Run) -> None:
        self._work, self._run = work, run
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._lanes = 0
        self._flushes: set[asyncio.Task[None]] = set()

    def put(self, item: T) -> asyncio.Future[R]:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._lanes < LANES:
            self._lanes += 1
            # Not in the context of whoever happens to come first: it writes for others, too.
            flush = asyncio.create_task(self._flush(), context=contextvars.Context())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return future

    async def _flush(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._together(taken)
        finally:
            self._lanes -= 1

    async def _together(self, taken: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._run(self._work, [item for item, _ in taken])
        except Exception as fault:  # noqa: BLE001 - it belongs to everybody who waits
            results = [fault] * len(taken)
        for (_, future), result in zip(taken, results, strict=True):
            if future.done():  # whoever asked has gone; it was done all the same
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class Group(Generic[T, R]):
    """A function of many, called with one: `await group(item)`.

    `work` gets a list of items and returns for each its result or its exception; what it raises, all get. It is run
    by `hop`, or by `outcome`.
    """

    def __init__(self, work: Callable[[list[T]], list[R | Exception]], *, run: Run = hop) -> None:
        self._work, self._run = work, run
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue[T, R]] = (
            weakref.WeakKeyDictionary()
        )

    async def __call__(self, item: T) -> R:
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue(self._work, self._run)
        return await queue.put(item)


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
            results += in_thread(work, [item])
        except Overloaded as away:
            results.append(away)
            break
    return results + [Overloaded.away(undone=True) for _ in items[len(results) :]]
