"""Recurring work: the hourly purge, by a Celery worker that beat calls, or by the process that runs agents itself; and
duties of other apps, and the count of the queue after a burst, by every process that runs agents.

The purge pauses after each batch as long as the batch took, but at most MAX_REST_SECONDS. So it takes about half of the
database's capacity at most. It works for A2A_PURGE_SECONDS at most, and continues an hour later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from a2a_tasks import process_lifetime
from a2a_tasks.audit import act_as
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.call_trees import look_at_all
from a2a_tasks.store.db import run_here, run_in_thread, run_to_completion
from a2a_tasks.store.purge import Removed, RetentionLimits, purge
from a2a_tasks.store.queue_statistics import renew

__all__ = ["DUTIES", "DutyKeeper", "Housekeeper", "purge_in_this_thread"]

logger = logging.getLogger(__name__)
#: Seconds from the start of a process to its first purge, so that the purge does not slow the start.
FIRST = 300.0
#: Seconds between purges.
EVERY = 3600.0
#: Seconds between looks at all runs that wait for other tasks.
LOOK_EVERY = 60.0
#: Duties of other apps, which end soon by themselves: a query that tells whether there is something to do, and the work.
DUTIES: list[tuple[Callable[[], bool], Callable[[], object]]] = []
#: Seconds before the first look for duties in a process that runs agents, and between looks.
DUTY_FIRST, DUTY_EVERY = 5.0, 2.0
#: Longest pause after a batch, in seconds.
MAX_REST_SECONDS = 1.0


class _Purge:
    """One purge by the settings, one batch per step."""

    def __init__(self) -> None:
        self._batches: Iterator[Removed] | None = None
        self._end = time.monotonic() + float(conf.PURGE_SECONDS)

    def step(self) -> tuple[Removed, float] | None:
        """Remove a batch; return the removed rows and the seconds to pause; None at the end. Can be retried."""
        with act_as(lambda: "system:retention"):
            return self._step()

    def _step(self) -> tuple[Removed, float] | None:
        begun = time.monotonic()
        if self._batches is None:
            self._batches = purge(RetentionLimits.from_settings())
        elif begun >= self._end:
            return None
        try:
            removed = next(self._batches, None)
        except BaseException:
            self._batches = None  # a generator that raised has ended: a retry starts anew
            raise
        return (
            None if removed is None else (removed, min(time.monotonic() - begun, MAX_REST_SECONDS))
        )


def _tell(done: Removed) -> None:
    if done.rows:
        logger.info(
            "retention removed %s tasks, %s contexts, %s rows", done.tasks, done.contexts, done.rows
        )


def purge_in_this_thread(stop: threading.Event) -> Removed:
    """Run one purge, which ends early when `stop` is set. Raises Overloaded."""
    done, under_way = Removed(), _Purge()
    while not stop.is_set() and (step := run_here(under_way.step)) is not None:
        done += step[0]
        stop.wait(step[1])
    _tell(done)
    return done


class DutyKeeper:
    """Does the duties of a process that runs agents: those of other apps, and counts. Must be made in the event loop."""

    def __init__(self) -> None:
        # Not one of the store, which duties use, nor of the event loop, which tools of agents may hold for hours.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="duties")
        self._tasks = [
            asyncio.create_task(_for_ever(work, DUTY_FIRST, DUTY_EVERY))
            for work in (self._look, self._count)
        ]

    async def _count(self) -> None:
        await run_in_thread(renew)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        for is_due, work in DUTIES:
            if await run_in_thread(is_due):
                await loop.run_in_executor(self._thread, _work, work)

    async def close(self) -> None:
        """Stop the work. Half of the drain is for what is under way: a bulk job that is given up goes on at once elsewhere."""
        await _cancel(self._tasks)
        end = asyncio.get_running_loop().run_in_executor(self._thread, connections.close_all)
        await asyncio.wait([end], timeout=process_lifetime.drain_seconds() / 2)
        self._thread.shutdown(wait=False, cancel_futures=True)


def _work(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connections.close_all()


class Housekeeper:
    """The recurring work of a process that also runs agents. Must be made in the event loop."""

    def __init__(self) -> None:
        self._tasks = [
            asyncio.create_task(_for_ever(self._purge, FIRST, EVERY)),
            asyncio.create_task(_for_ever(self._look, LOOK_EVERY, LOOK_EVERY)),
        ]

    async def _look(self) -> None:
        await run_in_thread(look_at_all)

    async def _purge(self) -> None:
        done, under_way = Removed(), _Purge()
        while (
            not process_lifetime.is_draining()
            and (step := await run_to_completion(under_way.step)) is not None
        ):
            done += step[0]
            await asyncio.sleep(step[1])
        _tell(done)

    async def close(self) -> None:
        """Stop the work."""
        await _cancel(self._tasks)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _for_ever(work: Callable[[], Awaitable[object]], first: float, every: float) -> None:
    await asyncio.sleep(first)
    while not process_lifetime.is_draining():
        try:
            await work()
        except Overloaded:  # the store has told of it
            pass
        except Exception as fault:  # noqa: BLE001 - after any failure it is tried again
            logger.warning("housekeeping failed: %r", fault.__cause__ or fault)
        await asyncio.sleep(every)
