"""One connection as bytes that come and bytes that go, with no more in memory than is asked for."""

from __future__ import annotations

import asyncio
from typing import cast

from a2a_tasks.outbound.web_address import IPAddress

__all__ = ["CHUNK", "Wire"]

#: Bytes given out at once, and bytes unread at which the other side is made to wait.
CHUNK, FULL = 16 * 1024, 64 * 1024


class Wire(asyncio.Protocol):
    """A stream connection. One reader.

    Not asyncio's streams: they forget what came before a reset, and an early answer is followed by one.
    """

    transport: asyncio.Transport
    #: Who was dialled.
    peer: IPAddress

    def __init__(self) -> None:
        #: Bytes that were ever given out.
        self.taken = 0
        self._unread = bytearray()
        self._over = False
        self._fault: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        """Called by the loop."""
        self._unread += data
        if len(self._unread) > FULL:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Called by the loop; the transport closes itself."""
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop."""
        self._over, self._fault = True, exc
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def read(self) -> bytes:
        """What came, at most CHUNK bytes; empty at the end. Raises OSError once all is read, if that is how it ended."""
        while not self._unread and not self._over:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        if not self._unread and self._fault is not None:
            raise OSError(str(self._fault)) from self._fault
        data = bytes(self._unread[:CHUNK])
        del self._unread[:CHUNK]
        self.taken += len(data)
        if not self._unread and not self._over:
            self.transport.resume_reading()
        return data

    def write(self, data: bytes) -> None:
        """Send, sooner or later."""
        self.transport.write(data)

    @property
    def unread(self) -> bool:
        """Has something come that was not given out yet?"""
        return bool(self._unread)

    @property
    def quiet(self) -> bool:
        """Is it open, with nothing unsaid and nothing unread?"""
        closing = self._over or self.transport.is_closing()
        return not (closing or self._unread or self.transport.get_write_buffer_size())

    def abort(self) -> None:
        """Close at once."""
        self._over = True
        self.transport.abort()
