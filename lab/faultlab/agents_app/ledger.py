"""The ledger: what the lab's agents really did, written beside the host, one line a write (O_APPEND)."""

from __future__ import annotations

import json
import os
import time
from typing import Any

__all__ = ["ahead", "note", "now"]

_path = os.environ.get("FAULTLAB_LEDGER", os.devnull)
#: A clock that is set whenever the machine's wall clock is set. The wall clock of this process may be wrong on purpose.
_CLOCK = getattr(time, "CLOCK_TAI", time.CLOCK_REALTIME)
#: Seconds by which that clock is ahead of the wall clock; a whole number.
_ahead = float(os.environ.get("FAULTLAB_TAI", "0"))


def now() -> float:
    """The machine's wall clock, in seconds since the epoch."""
    return time.clock_gettime(_CLOCK) - _ahead


def ahead() -> int:
    """Seconds by which the clock of the ledger is ahead of this process's wall clock."""
    return round(time.clock_gettime(_CLOCK) - time.time())


def note(what: str, task: str, attempt: int, **more: Any) -> None:
    """Add a line. It is in the file when this returns, whatever becomes of the process."""
    line = {"t": now(), "what": what, "task": task, "attempt": attempt, **more}
    file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
