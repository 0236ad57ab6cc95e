"""What clients and the lab saw, one JSON object a line; agents write their ledger in the same form.

Every record has `t`, the moment in seconds since the epoch, and `what`. All processes of a lab share one clock.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["History", "Record", "read"]


@dataclass(frozen=True, slots=True)
class Record:
    """One line: when, what, and the members that go with it."""

    t: float
    what: str
    said: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """A member. Raises KeyError."""
        return self.said[name]

    def get(self, name: str, default: Any = None) -> Any:
        """A member that may be missing."""
        return self.said.get(name, default)


class History:
    """Appends records to a file, from any thread or event loop, and beside other processes that append to it.

    A record is one write to a file opened for appending, so lines never mix; it is with the kernel when `append` returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._lock = threading.Lock()

    def append(self, what: str, **said: Any) -> Record:
        """Write down that something happened now."""
        with self._lock:  # the moments in the file ascend
            record = Record(time.time(), what, said)
            line = json.dumps({"t": record.t, "what": what, **said}, ensure_ascii=False)
            os.write(self._file, line.encode() + b"\n")
        return record

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


def read(path: Path) -> list[Record]:
    """The records of a file in order; none if it is not there. A torn last line is left out.

    Raises ValueError for any other line that is no record: a history with a hole proves nothing.
    """
    if not path.exists():
        return []
    *lines, torn = path.read_bytes().split(b"\n")
    records = [_record(path, number, line) for number, line in enumerate(lines, 1)]
    return records if not torn else records + _whole(path, len(lines) + 1, torn)


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        said = json.loads(line)
        return Record(float(said.pop("t")), str(said.pop("what")), said)
    except (ValueError, KeyError, AttributeError, TypeError) as fault:
        raise ValueError(f"line {number} of {path.name} is no record: {line[:200]!r}") from fault


def _whole(path: Path, number: int, line: bytes) -> list[Record]:
    """The last line, if only its line break is missing."""
    try:
        return [_record(path, number, line)]
    except ValueError:
        return []
