"""What is done again and again: by a Celery worker that beat calls, or by the process that runs agents itself.

That is the hourly purge, and counting up what ended, for the dashboard (`store/sums.py`). The purge rests after each batch as long as the batch took, so that it never takes more than half of what the
database can do, and works A2A_PURGE_SECONDS at the most; an hour later it goes on.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator

from a2a_tasks import lifetime
from a2a_tasks.audit import acting
from a2a_tasks.conf import conf
from a2a_tasks.store import sums
from a2a_tasks.store.hop import hop, in_thread, outcome
from a2a_tasks.store.purge import Limits, Removed, purge

__all__ = ["Housekeeper", "purge_in_this_thread"]

logger = logging.getLogger(__name__)
#: Seconds from the start of a process to the first of it: not while everything starts.
FIRST = 300.0
#: Seconds between purges, and between looks whether there is something to count up.
EVERY, COUNTED_UP_EVERY = 3600.0, 300.0
#: Longest rest after a batch, in seconds.
LONGEST_REST = 1.0


class _Purge:
    """One purge by the settings, a batch a step."""

    def __init__(self) -> None:
        self._batches: Iterator[Removed] | None = None
        self._end = time.monotonic() + float(conf.PURGE_SECONDS)

    def step(self) -> tuple[Removed, float] | None:
        """Remove a batch: what went, and the seconds to rest after it; None at the end. Called again, it goes on."""
        with acting(lambda: "system:retention"):
            return self._step()

    def _step(self) -> tuple[Removed, float] | None:
        begun = time.monotonic()
        if self._batches is None:
            self._batches = purge(Limits.configured())
        elif begun >= self._end:
            return None
        try:
            removed = next(self._batches, None)
        except BaseException:
            self._batches = None  # what raised is over: whoever tries again begins anew
            raise
        return None if removed is None else (removed, min(time.monotonic() - begun, LONGEST_REST))


def _tell(done: Removed) -> None:
    if done.rows:
        logger.info(
            "retention removed %s tasks, %s contexts, %s rows", done.tasks, done.contexts, done.rows
        )


def purge_in_this_thread(stop: threading.Event) -> Removed:
    """One purge, ended early when `stop` is set. Raises Overloaded."""
    done, under_way = Removed(), _Purge()
    while not stop.is_set() and (step := in_thread(under_way.step)) is not None:
        done += step[0]
        stop.wait(step[1])
    _tell(done)
    return done


class Housekeeper:
    """Purges every hour, and counts up, beside the runner of this loop. Make it in the loop."""

    def __init__(self) -> None:
        count_up = functools.partial(hop, sums.count_up)
        self._tasks = [
            asyncio.create_task(_for_ever(self._purge, EVERY)),
            asyncio.create_task(_for_ever(count_up, COUNTED_UP_EVERY)),
        ]

    async def _purge(self) -> None:
        done, under_way = Removed(), _Purge()
        while not lifetime.draining() and (step := await outcome(under_way.step)) is not None:
            done += step[0]
            await asyncio.sleep(step[1])
        _tell(done)

    async def close(self) -> None:
        """Do no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _for_ever(work: Callable[[], Awaitable[object]], every: float) -> None:
    await asyncio.sleep(FIRST)
    while not lifetime.draining():
        try:
            await work()
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again
            logger.warning("housekeeping came to nothing: %r", fault.__cause__ or fault)
        await asyncio.sleep(every)
