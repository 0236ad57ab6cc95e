"""The ledger: what the lab's agents really did, written beside the host, one line a write (O_APPEND)."""

from __future__ import annotations

import json
import os
import time
from typing import Any

__all__ = ["note"]

_path = os.environ.get("FAULTLAB_LEDGER", os.devnull)


def note(what: str, task: str, attempt: int, **more: Any) -> None:
    """Add a line. It is in the file when this returns, whatever becomes of the process."""
    line = {"t": time.time(), "what": what, "task": task, "attempt": attempt, **more}
    file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)
