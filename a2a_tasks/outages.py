"""Throttled log lines about an unavailable server: at once, and then at intervals, however often it fails."""

from __future__ import annotations

import logging
import threading
import time

__all__ = ["ThrottledLogger"]

#: Seconds between two lines about the same server.
INTERVAL_SECONDS = 10.0


class ThrottledLogger:
    """The log lines about one server, or about one use of it. Thread-safe."""

    def __init__(self, logger: logging.Logger, outage: str) -> None:
        """`outage` is the beginning of each line: "the database is away"."""
        self._logger, self._outage = logger, outage
        self._lock = threading.Lock()
        self._count, self._next = 0, 0.0

    def warning(self, fault: BaseException) -> None:
        """Count a failure and log it at once, or with the next line."""
        with self._lock:
            self._count += 1
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + INTERVAL_SECONDS
            count, self._count = self._count, 0
        reason = str(fault).strip().partition("\n")[0] or type(fault).__name__
        times = "" if count == 1 else f" ({count} times)"
        self._logger.warning("%s%s: %s", self._outage, times, reason)
