"""Seals the audit log every second, in one process of those that run agents; whoever is at it, the others pass by."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from a2a_tasks import lifetime
from a2a_tasks.outages import Outage
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.audit_seals import MOST, seal
from a2a_tasks.store.hop import hop

__all__ = ["Sealer"]

_outage = Outage(logging.getLogger(__name__), "the audit log was not sealed")
EVERY = 1.0


class Sealer:
    """Seals beside the runner of this loop. Make it in the loop."""

    def __init__(self) -> None:
        self._task = asyncio.create_task(self._for_ever())

    async def _for_ever(self) -> None:
        while not lifetime.draining():
            await asyncio.sleep(EVERY)
            await self._seal()

    async def _seal(self) -> None:
        """Seal what there is now; what cannot be sealed is sealed later."""
        try:
            more = True
            while more:
                more = await hop(seal) == MOST
        except Overloaded:  # the store has told the log
            pass
        except Exception as fault:  # noqa: BLE001 - whatever it is, it is tried again in a second
            _outage.count(fault)

    async def close(self) -> None:
        """Seal once more, then no more."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._seal()
