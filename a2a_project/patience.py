"""How long the servers wait for a request to come, and how much of it they take. docs/decisions/0109 says why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a2a_project.lifecycle import Serving

__all__ = ["TOO_LARGE", "TOO_SLOW", "Coming"]


def _answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".encode()


TOO_SLOW = _answer("408 Request Timeout")
TOO_LARGE = _answer("413 Content Too Large")


class Coming:
    """A request that is on its way: since when, and how much of it is here."""

    __slots__ = ("_serving", "came", "since")

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.since, self.came = time.monotonic(), 0

    @property
    def left(self) -> float:
        """Seconds it may take yet: every byte of it buys time."""
        bought = self.came / self._serving.request_bytes_per_second
        return self.since + self._serving.request_seconds + bought - time.monotonic()
