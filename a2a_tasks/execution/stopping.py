"""Stopping what does not stop by itself: told, then forced again and again, in the end let go (decision 82).

Whoever tells something to stop has done that when this begins. The whole takes A2A_STOP_SECONDS.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from a2a_tasks.conf import conf

__all__ = ["Stubborn", "insist"]

#: Of so many parts of A2A_STOP_SECONDS the first half is for cleaning up; after each of the others force is used.
PARTS = 8


class Stubborn(Protocol):
    """Something that was told to stop."""

    @property
    def gone(self) -> bool:
        """Has it stopped?"""

    def force(self) -> None:
        """Interrupt it, whatever it does."""

    def let_go(self) -> None:
        """Do without it: it was forced and goes on."""


def insist(loop: asyncio.AbstractEventLoop, thing: Stubborn) -> None:
    """See to it that it stops, or that nobody waits for it any more. Call it in the loop."""
    part = float(conf.STOP_SECONDS) / PARTS

    def look(times: int) -> None:
        if thing.gone:
            return
        if not times:
            thing.let_go()
            return
        thing.force()
        loop.call_later(part, look, times - 1)

    loop.call_later(part * PARTS / 2, look, PARTS // 2)
