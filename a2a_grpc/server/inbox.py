"""The bytes that have come of calls and are not read yet, bounded for each connection and for the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grpclib.protocol import Buffer

from a2a_tasks.bindings.byte_quota import ByteQuota, take_turn

__all__ = ["Inbox"]


class Inbox(Buffer):
    """The unread bytes of one call, in place of grpclib's buffer.

    grpclib's has an object for each frame, and no limit: a message that is being read does not count in the windows of
    HTTP/2. Here windows are always open, and a call that exceeds the quota is refused.
    """

    def __init__(
        self, acknowledge: Callable[[int], None], quota: ByteQuota, unread_answers: ByteQuota
    ) -> None:
        """`quota`: for what the host has not read; `unread_answers`: for what the client has not read of the connection."""
        self._acknowledge, self._quota, self.unread_answers = acknowledge, quota, unread_answers
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
        await take_turn(size)
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
