"""The ledger: what the lab's agents really did, written beside the host, one line a write (O_APPEND)."""

from __future__ import annotations

import json
import os
import time
from typing import Any

__all__ = ["note", "now"]

_path = os.environ.get("FAULTLAB_LEDGER", os.devnull)
#: The time at which the machine's monotonic clock began: this process's own clock may be wrong on purpose.
_epoch = float(os.environ.get("FAULTLAB_EPOCH", "0"))


def now() -> float:
    """The time, whatever this process takes it for."""
    return _epoch + time.monotonic()


def note(what: str, task: str, attempt: int, **more: Any) -> None:
    """Add a line. It is in the file when this returns, whatever becomes of the process."""
    line = {"t": now(), "what": what, "task": task, "attempt": attempt, **more}
    file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
