"""Throttled log lines, about an unavailable server or of a library: at once, and then at intervals."""

from __future__ import annotations

import logging
import threading
import time
import traceback

__all__ = ["ThrottleFilter", "ThrottledLogger"]

#: Seconds between two lines about the same server.
INTERVAL_SECONDS = 10.0


#: Maximum number of kinds of lines that a ThrottleFilter counts. At this number it forgets all counts.
MAX_KINDS = 100


class _Throttle:
    """The count of a repeated line. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count, self._next = 0, 0.0

    def add(self) -> int:
        """Count the line once more; returns how many lines are due to be told of, 0 = none yet."""
        with self._lock:
            self._count += 1
            if time.monotonic() < self._next:
                return 0
            self._next = time.monotonic() + INTERVAL_SECONDS
            count, self._count = self._count, 0
            return count


class ThrottledLogger:
    """The log lines about one server, or about one use of it. Thread-safe."""

    def __init__(self, logger: logging.Logger, outage: str) -> None:
        """`outage` is the beginning of each line: "the database is away"."""
        self._logger, self._outage, self._throttle = logger, outage, _Throttle()

    def warning(self, fault: BaseException) -> None:
        """Count a failure and log it at once, or with the next line."""
        if count := self._throttle.add():
            reason = str(fault).strip().partition("\n")[0] or type(fault).__name__
            times = "" if count == 1 else f" ({count} times)"
            self._logger.warning("%s%s: %s", self._outage, times, reason)


class ThrottleFilter(logging.Filter):
    """A filter for the logger of a library that writes a line for each bad request.

    Lines are of one kind if they come from one statement, with errors from one place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[tuple[object, ...], _Throttle] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the first line of its kind, and one at intervals that says how many there were."""
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        kind = (record.levelno, record.pathname, record.lineno, *_find_origin(record))
        count = self._kinds.setdefault(kind, _Throttle()).add()
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count} times)", ()
        return count > 0


def _find_origin(record: logging.LogRecord) -> tuple[object, ...]:
    """Return the type of the record's exception, and the place that raised it."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return ()
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return (type(error), *places[-1:])
