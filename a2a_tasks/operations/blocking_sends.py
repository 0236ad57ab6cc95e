"""The time a request waits for its task: limited by a number of seconds and by the drain of its process."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

from a2a_tasks import process_lifetime

__all__ = ["at_most"]

#: Seconds before the end of the drain at which a waiting client is answered.
ANSWER_SECONDS = 0.5


@contextlib.asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    """Leave the block after so many seconds, or in time before a drain is over; the work done so far is kept."""
    loop, over = asyncio.get_running_loop(), False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds) as limit:

            def hurry() -> None:
                left = max(0.0, process_lifetime.drain_seconds() - ANSWER_SECONDS)
                if not over:
                    limit.reschedule(min(limit.when() or math.inf, loop.time() + left))

            forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(hurry))
            try:
                yield
            finally:
                over = True
                forget()
