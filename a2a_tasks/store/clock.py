"""The database's clock, which all processes share, as this process knows it.

A time that another process will compare comes from here. `now` asks the database once in FRESH_SECONDS; between two
reads the monotonic clock goes on, so that a jump of this process's own clock changes nothing.
"""

from __future__ import annotations

import datetime
import time
from typing import NamedTuple

from a2a_tasks.store.backend.server import read_clock

__all__ = ["estimate", "forget", "moment", "now"]

#: Maximum age of a read, in seconds by the monotonic clock.
FRESH_SECONDS = 10.0
#: A read is repeated after a jump of this process's clock by more seconds: the machine was suspended, or its clock was set.
JUMP_SECONDS = 0.5


class _Reading(NamedTuple):
    """A read of the database's clock, with the clocks of this process at that time, in seconds."""

    shared: float
    monotonic: float
    own: float

    @property
    def is_fresh(self) -> bool:
        passed = time.monotonic() - self.monotonic
        return passed < FRESH_SECONDS and abs(time.time() - self.own - passed) < JUMP_SECONDS


_last: _Reading | None = None


def now() -> datetime.datetime:
    """Return the time by the database's clock, in a thread of the store. It may read the database."""
    global _last  # noqa: PLW0603 - one per process
    if _last is None or not _last.is_fresh:
        shared = read_clock()
        _last = _Reading(shared, time.monotonic(), time.time())
    return moment(estimate())


def estimate() -> float:
    """Return the time by the database's clock in seconds since the epoch, without a read, for event loops.

    Before the first read this is the clock of this process.
    """
    if _last is None:
        return time.time()
    return _last.shared + time.monotonic() - _last.monotonic


def moment(seconds: float) -> datetime.datetime:
    """Return the time of these seconds since the epoch."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def forget() -> None:
    """Forget what was read, as in a new process."""
    global _last  # noqa: PLW0603 - one per process
    _last = None
