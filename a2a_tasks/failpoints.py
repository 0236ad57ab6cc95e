"""Failpoints: named places at which the fault lab kills, stops or breaks a process (docs/testing.md).

They do nothing unless A2A_FAILPOINTS names a directory, which no deployment does. The lab arms one by a file there;
the process that comes by as the n-th of all takes the fault, alone.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from django.db import OperationalError

__all__ = ["NAMES", "ON", "STRIKING", "Armed", "failpoint"]

#: Every failpoint there is, by what it interrupts. Faults of another kind are the lab's own.
NAMES = (
    "accept.before",
    "accept.inserted",
    "accept.accompanied",
    "accept.committed",
    "accept.announced",
    "accept.responding",
    "worker.rung",
    "worker.claiming",
    "worker.claimed",
    "worker.agent_started",
    "worker.append_begins",
    "worker.appending",
    "worker.appended",
    "worker.announced",
    "worker.step_begins",
    "worker.keep_begins",
    "worker.step_inside",
    "worker.step_kept",
    "worker.agent_returned",
    "worker.ending",
    "worker.ended",
    "worker.beating",
    "worker.stopping",
    "worker.draining",
    "rescue.found",
    "rescue.fenced",
    "stream.began",
    "stream.mid_frame",
    "stream.caught_up",
    "scheduler.fired",
    "webhook.claimed",
    "webhook.row_written",
    "webhook.sent",
    "webhook.answered",
    "webhook.settled",
    "webhook.disabling",
)

_directory = os.environ.get("A2A_FAILPOINTS", "")
#: Are there any? Asked where a failpoint would cost something even unarmed.
ON = bool(_directory)


class Armed(msgspec.Struct, frozen=True):
    """The file `armed`: which failpoint, what happens there, and at which passing of a process."""

    #: Names the fault among those of one lab; its traces are the files `passing-ID` and `fired-ID`.
    id: str
    name: str
    #: `kill`, `term`, `stop` (signals to the process itself) or `raise` (a database error).
    action: str
    #: Counted over all processes.
    nth: int = 1


#: A signal to a process strikes its threads one after the other: seconds in which this one gets no further.
STRIKING = 0.02
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}


@dataclass
class _Watch:
    """What this process knows of the file `armed`."""

    directory: Path
    armed: Armed | None = None
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, name: str) -> str | None:
        """The action to take at this failpoint, now, by this process; None almost always."""
        with self._lock:
            armed = self._read()
            if armed is None or armed.name != name:
                return None
            return armed.action if self._passed(armed) >= armed.nth and self._first(armed) else None

    def _read(self) -> Armed | None:
        path = self.directory / "armed"
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._seen:
                self.armed = msgspec.json.decode(path.read_bytes(), type=Armed)
                self._seen = changed
        except FileNotFoundError:
            self._seen, self.armed = 0, None
        return self.armed

    def _passed(self, armed: Armed) -> int:
        """How often processes have passed it by now, this time included: a byte each."""
        trace = os.open(
            self.directory / f"passing-{armed.id}", os.O_CREAT | os.O_APPEND | os.O_RDWR
        )
        try:
            os.write(trace, b".")
            return os.fstat(trace).st_size
        finally:
            os.close(trace)

    def _first(self, armed: Armed) -> bool:
        try:
            trace = os.open(
                self.directory / f"fired-{armed.id}", os.O_CREAT | os.O_EXCL | os.O_WRONLY
            )
        except FileExistsError:
            return False
        os.write(trace, f"{os.getpid()} {time.time()}\n".encode())
        os.close(trace)
        return True


_watch = _Watch(Path(_directory))


def failpoint(name: str) -> None:
    """Pass a failpoint. Raises OperationalError if the lab wants it so."""
    if not ON:
        return
    action = _watch.takes(name)
    if action in SIGNALS:
        os.kill(os.getpid(), SIGNALS[action])
        time.sleep(STRIKING)
    elif action == "raise":
        raise OperationalError(f"failpoint {name}")
