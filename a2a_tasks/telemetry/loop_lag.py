"""The lag of this process's event loop: the time by which a task is woken too late.

Work that holds the loop delays all requests and runs of the process. Prometheus sees a loop that stands still, too: the
number of measurements no longer grows.
"""

from __future__ import annotations

import asyncio

from prometheus_client import Histogram

from a2a_tasks import process_lifetime

__all__ = ["begin"]

#: Seconds between two measurements.
EVERY = 0.5
_lag = Histogram(
    "a2a_event_loop_lag_seconds",
    "Seconds by which the event loop woke a task too late, measured twice a second.",
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)


async def begin() -> None:
    """Measure this event loop until the helpers of the process stop."""
    task = asyncio.create_task(_measure())

    async def close() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    process_lifetime.on_stop(close)


async def _measure() -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + EVERY
        await asyncio.sleep(EVERY)
        _lag.observe(max(0.0, loop.time() - due))
