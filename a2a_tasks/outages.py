"""Telling the log that a server is away: once, and then now and then, however often it is asked."""

from __future__ import annotations

import logging
import threading
import time

__all__ = ["Outage"]

#: Seconds between two lines about the same server.
TELL_SECONDS = 10.0


class Outage:
    """One server, or one use of it. Thread-safe."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        """`what` becomes the line's beginning: "the database is away"."""
        self._logger, self._what = logger, what
        self._lock = threading.Lock()
        self._count, self._next = 0, 0.0

    def count(self, fault: BaseException) -> None:
        """It failed once more: told at once, or with the next line."""
        with self._lock:
            self._count += 1
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + TELL_SECONDS
            count, self._count = self._count, 0
        reason = str(fault).strip().partition("\n")[0] or type(fault).__name__
        times = "" if count == 1 else f" ({count} times)"
        self._logger.warning("%s%s: %s", self._what, times, reason)
