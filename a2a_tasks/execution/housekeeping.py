"""The hourly purge: by a Celery worker that beat calls, or by the process that runs agents itself.

It rests after each batch as long as the batch took, so that it never takes more than half of what the database can do,
and works A2A_PURGE_SECONDS at the most; an hour later it goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Iterator

from a2a_tasks import lifetime
from a2a_tasks.audit import acting
from a2a_tasks.conf import conf
from a2a_tasks.store.hop import hop, in_thread
from a2a_tasks.store.purge import Limits, Removed, purge

__all__ = ["Housekeeper", "purge_in_this_thread"]

logger = logging.getLogger(__name__)
#: Seconds from the start of a process to its first purge: not while everything starts.
FIRST = 300.0
EVERY = 3600.0
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
    """Purges every hour beside the runner of this loop. Make it in the loop."""

    def __init__(self) -> None:
        self._task = asyncio.create_task(self._for_ever())

    async def _for_ever(self) -> None:
        await asyncio.sleep(FIRST)
        while not lifetime.draining():
            try:
                await self._purge()
            except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again in an hour
                logger.warning("no purge: %r", fault.__cause__ or fault)
            await asyncio.sleep(EVERY)

    async def _purge(self) -> None:
        done, under_way = Removed(), _Purge()
        while not lifetime.draining() and (step := await hop(under_way.step)) is not None:
            done += step[0]
            await asyncio.sleep(step[1])
        _tell(done)

    async def close(self) -> None:
        """Purge no more."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
