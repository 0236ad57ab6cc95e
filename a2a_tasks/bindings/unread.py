"""Answers that clients have not read yet: their bytes in this process, and how slowly they may be read.

A client that reads nothing would otherwise keep its answers in memory for as long as it stays.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import logging
import struct
import sys
import termios

from a2a_tasks.bindings.byte_quota import ByteQuota
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger

__all__ = ["PIECE", "Reader", "count_unread", "is_too_slow", "patience", "unread"]

_cut = ThrottledLogger(
    logging.getLogger(__name__), "the connection of a client that does not read was cut"
)
#: Bytes of an answer that are written together.
PIECE = 64 * 1024


@functools.cache
def unread() -> ByteQuota:
    """Return the quota of this process, for the answers of all bindings."""
    return ByteQuota(int(conf.MAX_UNREAD_BYTES) or sys.maxsize)


def patience() -> float:
    """Return the seconds after which a client that has more to read is looked at; 0 = never."""
    return float(conf.REQUEST_SECONDS)


def is_too_slow(taken: int) -> bool:
    """Return whether a client is cut off that has read this many bytes in the time of `patience`."""
    return taken < patience() * int(conf.REQUEST_BYTES_PER_SECOND)


def count_unread(transport: asyncio.WriteTransport) -> int:
    """Return the bytes that were written and that the client's machine has not taken, also those in the kernel.

    The kernel has megabytes of a connection, and takes no more before a third of them has gone: by what waits here
    alone, a client that reads 50 KB a second would seem to stand still for half a minute.
    """
    here, socket = transport.get_write_buffer_size(), transport.get_extra_info("socket")
    if socket is None:
        return here
    try:
        (there,) = struct.unpack("i", fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, bytes(4)))
    except (OSError, ValueError):  # it is closed, or this system does not tell
        return here
    return here + int(there)


class TooMuchUnread(Exception):
    """The clients of this process have not read more bytes than A2A_MAX_UNREAD_BYTES allows."""


class Reader:
    """The client of one connection, as far as it has something to read."""

    __slots__ = ("_counted", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        #: Bytes that count as unread, and the next look at the client.
        self._counted = 0
        self._timer: asyncio.TimerHandle | None = None

    def count(self) -> None:
        """Count what the client has not read, and begin to watch it; cut it off if all clients have too much."""
        size = self._transport.get_write_buffer_size()
        if unread().take(size, 0):
            self._counted = size
            self.watch()
        else:
            _cut.warning(TooMuchUnread(f"{size} bytes beside {unread().used} of others"))
            self._transport.abort()

    def watch(self) -> None:
        """Begin to watch a client that has more to read, also after the end of its answer or of its connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport.get_write_buffer_size() and (wait := patience()):
            left = count_unread(self._transport)
            self._timer = asyncio.get_running_loop().call_later(wait, self._look, left)

    def stop(self) -> None:
        """Count nothing more, and watch no longer."""
        self._lower(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, before: int) -> None:
        """Cut off a client that has read too little since the last look."""
        left = self._transport.get_write_buffer_size()
        if left and is_too_slow(before - count_unread(self._transport)):
            self._transport.abort()
            return
        self._lower(min(left, self._counted))
        self.watch()

    def _lower(self, size: int) -> None:
        unread().give_back(self._counted - size)
        self._counted = size
