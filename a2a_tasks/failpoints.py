"""Failpoints: named places at which the fault lab kills, stops or breaks a process (lab/README.md).

They do nothing unless A2A_FAILPOINTS names a directory, which no deployment does. The lab arms a failpoint by a file in
that directory; only the process that passes it as the n-th of all processes takes the fault.
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

__all__ = ["NAMES", "ON", "STRIKING", "ArmedFailpoint", "failpoint"]

#: All failpoints, by the step they interrupt. Faults of other kinds are made by the lab itself.
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
    "worker.reported",
    "worker.agent_returned",
    "worker.ending",
    "worker.ended",
    "worker.beating",
    "worker.stopping",
    "worker.draining",
    "park.begins",
    "park.fenced",
    "park.parked",
    "park.waking",
    "park.woken",
    "call.accepting",
    "call.accepted",
    "call.relaying",
    "call.relayed",
    "call.answering",
    "call.answered",
    "call.closing",
    "call.closed",
    "call.cancelling",
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
#: True if failpoints are enabled. Checked where even an unarmed failpoint would cost time.
ON = bool(_directory)


class ArmedFailpoint(msgspec.Struct, frozen=True):
    """The file `armed`: the failpoint, the action, and the number of the pass at which it happens."""

    #: Identifies the fault within one lab; its traces are the files `passing-ID` and `fired-ID`.
    id: str
    name: str
    #: `kill`, `term`, `stop` (signals to the process itself) or `raise` (a database error).
    action: str
    #: The number of the pass, counted over all processes.
    nth: int = 1


#: Seconds to wait in this thread after a signal to the process, which reaches its threads one after the other.
STRIKING = 0.02
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}


@dataclass
class _Watch:
    """The state of the file `armed` as this process last read it."""

    directory: Path
    armed: ArmedFailpoint | None = None
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, name: str) -> str | None:
        """Return the action that this process takes at this failpoint now; almost always None."""
        with self._lock:
            armed = self._read()
            if armed is None or armed.name != name:
                return None
            return (
                armed.action
                if self._count_pass(armed) >= armed.nth and self._first(armed)
                else None
            )

    def _read(self) -> ArmedFailpoint | None:
        path = self.directory / "armed"
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._seen:
                self.armed = msgspec.json.decode(path.read_bytes(), type=ArmedFailpoint)
                self._seen = changed
        except FileNotFoundError:
            self._seen, self.armed = 0, None
        return self.armed

    def _count_pass(self, armed: ArmedFailpoint) -> int:
        """Record a pass as one byte in a file; return the number of passes of all processes, including this one."""
        trace = os.open(
            self.directory / f"passing-{armed.id}", os.O_CREAT | os.O_APPEND | os.O_RDWR
        )
        try:
            os.write(trace, b".")
            return os.fstat(trace).st_size
        finally:
            os.close(trace)

    def _first(self, armed: ArmedFailpoint) -> bool:
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
    """Pass a failpoint. Raises OperationalError if the lab has armed that action."""
    if not ON:
        return
    action = _watch.takes(name)
    if action in SIGNALS:
        os.kill(os.getpid(), SIGNALS[action])
        time.sleep(STRIKING)
    elif action == "raise":
        raise OperationalError(f"failpoint {name}")
