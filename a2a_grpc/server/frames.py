"""The bytes of a client, cut into the frames of HTTP/2 (RFC 9113 §4.1 and §6), so that they can be counted one by one."""

from __future__ import annotations

from h2.exceptions import FrameTooLargeError

__all__ = ["FrameCutter", "is_void"]

#: Bytes of the greeting before the first frame (RFC 9113 §3.4), and of the head of a frame.
GREETING, HEAD = 24, 9
DATA, PRIORITY, SETTINGS, PING, CONTINUATION = 0, 2, 4, 6, 9
END_STREAM, PADDED = 0x1, 0x8
#: Size of a frame with padding above which it must carry something: padding has at most 255 bytes, and its length one.
PADDING = 256


def is_void(frame: bytes) -> bool:
    """Return whether a frame carries nothing for any call. An empty DATA frame may end the message of its call."""
    size, kind, flags = int.from_bytes(frame[:3]), frame[3], frame[4]
    if kind == DATA:
        return not flags & END_STREAM and size <= (PADDING if flags & PADDED else 0)
    if kind == CONTINUATION:
        return not size
    return kind in {PRIORITY, SETTINGS, PING} or kind > CONTINUATION


class FrameCutter:
    """The bytes that have come of one connection and are not handled yet."""

    def __init__(self) -> None:
        self._data, self._greeting = bytearray(), GREETING

    def add(self, data: bytes) -> None:
        """Keep what has come."""
        self._data += data

    def clear(self) -> None:
        """Drop everything."""
        self._data.clear()

    def take_greeting(self) -> bytes:
        """Return what has come of the greeting; empty after it."""
        found = self._cut(min(self._greeting, len(self._data)))
        self._greeting -= len(found)
        return found

    def take(self, largest: int) -> bytes:
        """Return the next frame with its head; empty if it has not come whole.

        Raises FrameTooLargeError for one that announces more than `largest` bytes, before they come.
        """
        size = int.from_bytes(self._data[:3])
        if len(self._data) >= HEAD and size > largest:
            raise FrameTooLargeError
        return self._cut(HEAD + size) if len(self._data) >= HEAD + size else b""

    def _cut(self, size: int) -> bytes:
        found = bytes(self._data[:size])
        del self._data[:size]
        return found
