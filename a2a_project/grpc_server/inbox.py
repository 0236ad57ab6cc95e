"""The bytes that have come of calls and are not read yet, bounded for each connection and for the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grpclib.protocol import Buffer

__all__ = ["ByteQuota", "Inbox"]


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


class Inbox(Buffer):
    """The unread bytes of one call, in place of grpclib's buffer.

    grpclib's has an object for each frame, and no limit: a message that is being read does not count in the windows of
    HTTP/2. Here windows are always open, and a call that exceeds the quota is refused.
    """

    def __init__(self, acknowledge: Callable[[int], None], quota: ByteQuota) -> None:
        self._acknowledge, self._quota = acknowledge, quota
        self._data, self._ended, self._changed = bytearray(), False, asyncio.Event()
        #: Bytes were dropped, because they exceeded the quota.
        self.overflowed = False

    def add(self, data: bytes, ack_size: int) -> None:
        """Keep what has come. Beyond the quota all is dropped, also what comes later."""
        self._acknowledge(ack_size)
        if self._ended:
            return
        if self._quota.take(len(data), len(self._data)):
            self._data += data
            self._changed.set()
        else:
            self.overflowed = True
            self.close()

    def eof(self) -> None:
        """Expect nothing more."""
        self._ended = True
        self._changed.set()

    def close(self) -> None:
        """Drop everything."""
        self._release(len(self._data))
        self.eof()

    async def read(self, size: int) -> bytes:
        """Return this many bytes, or fewer if no more come."""
        while len(self._data) < size and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        with memoryview(self._data) as data:
            found = bytes(data[:size])
        self._release(len(found))
        return found

    def unacked_size(self) -> int:
        """Return 0: all is acknowledged as it comes."""
        return 0

    def _release(self, size: int) -> None:
        del self._data[:size]
        self._quota.give_back(size)
