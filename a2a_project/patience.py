"""How long the servers wait for a request to come, and how much of it they take. docs/decisions/0109 says why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_project.lifecycle import Serving

__all__ = ["BAD", "HEAD_BYTES", "HEAD_LINES", "TOO_LARGE", "TOO_MUCH_HEAD", "TOO_SLOW", "Coming"]

#: Bytes and lines of a request's head, trailers included.
HEAD_BYTES, HEAD_LINES = 64 * 1024, 100


def _answer(status: str) -> bytes:
    body = f"{status[4:]}\n"
    head = f"connection: close\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}"
    return f"HTTP/1.1 {status}\r\n{head}\r\n\r\n{body}".encode()


BAD = _answer("400 Bad Request")
TOO_SLOW = _answer("408 Request Timeout")
TOO_LARGE = _answer("413 Content Too Large")
TOO_MUCH_HEAD = _answer("431 Request Header Fields Too Large")


class Coming:
    """A request that is on its way: since when, and how much of its body is here."""

    __slots__ = ("_serving", "came", "since")

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.since, self.came = time.monotonic(), 0

    @property
    def left(self) -> float:
        """Seconds it may take yet: every byte of its body buys time."""
        bought = self.came / self._serving.request_bytes_per_second
        return self.since + self._serving.request_seconds + bought - time.monotonic()
