"""The heartbeat file of a worker or beat: the process touches it as long as it works.

Health checks of containers look at the age of the file. This needs neither a Python process nor the broker.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from a2a_tasks import process_lifetime
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger

__all__ = ["begin", "touch"]

#: Seconds between two touches.
EVERY = 5.0
_silence = ThrottledLogger(logging.getLogger(__name__), "the heartbeat file was not touched")


def touch() -> None:
    """Touch A2A_HEARTBEAT_FILE, if it is set. A failure is only logged."""
    if path := str(conf.HEARTBEAT_FILE):
        try:
            Path(path).touch()
        except OSError as fault:
            _silence.warning(fault)


async def begin() -> None:
    """Touch the file as long as this event loop runs, until the helpers of the process stop."""
    if conf.HEARTBEAT_FILE:
        task = asyncio.create_task(_for_ever())

        async def close() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        process_lifetime.on_stop(close)


async def _for_ever() -> None:
    while True:
        touch()
        await asyncio.sleep(EVERY)
