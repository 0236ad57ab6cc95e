"""The read of the gauges that is under way: one in this process, whoever asks and however long it takes.

A scrape gives up, its statements do not. If each scrape had its own, they would hold all threads of the store.
"""

from __future__ import annotations

import asyncio

from prometheus_client.metrics_core import Metric

from a2a_project.gauges import read_gauges
from a2a_tasks.store.db import run_to_completion

__all__ = ["shared_reads"]


class _SharedReads:
    """The reads of this process."""

    def __init__(self) -> None:
        self._reading: asyncio.Task[list[Metric]] | None = None

    def join(self) -> asyncio.Task[list[Metric]]:
        """Return the read that is under way in this event loop, or a new one."""
        read = self._reading
        if read is None or read.done() or read.get_loop() is not asyncio.get_running_loop():
            self._reading = read = asyncio.create_task(run_to_completion(read_gauges))
            read.add_done_callback(_take_note)
        return read


def _take_note(read: asyncio.Task[list[Metric]]) -> None:
    """Take the exception of a read for which nobody waits any more: asyncio would log it as never retrieved."""
    if not read.cancelled():
        read.exception()


shared_reads = _SharedReads()
