"""Sealing of the audit log every second, in the processes that run agents; only one of them seals at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from a2a_tasks import process_lifetime
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.audit_seals import MAX_COUNT, seal
from a2a_tasks.store.db import run_in_thread

__all__ = ["Sealer"]

_outage = ThrottledLogger(logging.getLogger(__name__), "the audit log was not sealed")
EVERY = 1.0


class Sealer:
    """The sealing by a process that also runs agents. Must be made in the event loop."""

    def __init__(self) -> None:
        self._task = asyncio.create_task(self._for_ever())

    async def _for_ever(self) -> None:
        while not process_lifetime.is_draining():
            await asyncio.sleep(EVERY)
            await self._seal()

    async def _seal(self) -> None:
        """Seal the present entries; after a failure they are sealed later."""
        try:
            more = True
            while more:
                more = await run_in_thread(seal) == MAX_COUNT
        except Overloaded:  # the store has logged it
            pass
        except Exception as fault:  # noqa: BLE001 - after any failure it is tried again in a second
            _outage.warning(fault)

    async def close(self) -> None:
        """Seal once more, and stop."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._seal()
