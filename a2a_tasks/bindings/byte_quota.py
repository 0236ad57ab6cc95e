"""Bytes that several holders may have together."""

from __future__ import annotations

import asyncio
import weakref

__all__ = ["UNCOUNTED", "ByteQuota", "take_turn"]

#: The first bytes of a body do not count: short messages are read whatever slow clients hold. The number of connections
#: limits them.
UNCOUNTED = 64 * 1024
_turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
    weakref.WeakKeyDictionary()
)


async def take_turn(size: int) -> None:
    """Wait with a large body until the event loop has done other things since the one before: 4 MiB keep it for 0.1 s.

    300 bodies that ended together kept it for 30 seconds, and gunicorn killed the process.
    """
    if size <= UNCOUNTED:
        return
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        await asyncio.sleep(0)


class ByteQuota:
    """The number of bytes that several holders may have together.

    A holder gets no more than is then left for others, so that a few cannot use up everything: one alone gets half of
    it, two get a third each.
    """

    def __init__(self, limit: int, whole: ByteQuota | None = None) -> None:
        """`whole`: a quota in which this one is itself a holder."""
        self._limit, self._whole = limit, whole
        self.used = 0

    def take(self, size: int, held: int) -> bool:
        """Count bytes for a holder that has `held` of them already; False = they are too many."""
        if held + size > self._limit - self.used - size:
            return False
        if self._whole is not None and not self._whole.take(size, self.used):
            return False
        self.used += size
        return True

    def give_back(self, size: int) -> None:
        """Release bytes."""
        self.used -= size
        if self._whole is not None:
            self._whole.give_back(size)
