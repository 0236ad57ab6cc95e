"""The stack that runs on a data folder: which process supervises it, and how its last roll ended.

stack.pid    the supervisor's process, which holds a lock on the file for as long as it lives
stack.roll   how many rolls began and ended, and why the last one stopped, as JSON
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AlreadyRuns", "RollLog", "Rolls", "claimed", "restart", "supervisor_of"]

#: Seconds between looks at how a roll goes on.
LOOK_SECONDS = 0.2


class AlreadyRuns(Exception):
    """Another stack runs on this data folder."""


@dataclass(frozen=True, slots=True)
class Rolls:
    """How many rolls have begun and ended since the stack was started, and why the last one stopped, if it did."""

    begun: int = 0
    ended: int = 0
    stopped: str = ""


class RollLog:
    """Writes down what becomes of the rolls of this stack, for whoever asked for them."""

    def __init__(self, folder: Path) -> None:
        self._path, self._rolls = folder / "stack.roll", Rolls()

    def open(self) -> None:
        """From now on rolls may be asked for."""
        self._write()

    def note(self, outcome: str | None) -> None:
        """A roll has begun (None), or ended: well (empty), or stopped for this reason."""
        rolls = self._rolls
        if outcome is None:
            self._rolls = Rolls(rolls.begun + 1, rolls.ended, rolls.stopped)
        else:
            self._rolls = Rolls(rolls.begun, rolls.ended + 1, outcome)
        self._write()

    def _write(self) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self._rolls)))
        draft.replace(self._path)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Be the stack of this folder for as long as the block lasts. Raises AlreadyRuns."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "stack.pid"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRuns(path.read_text().strip()) from None
        (folder / "stack.roll").unlink(missing_ok=True)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def supervisor_of(folder: Path) -> int | None:
    """The process that supervises this folder's stack; None when none runs, whatever number an old one left."""
    with contextlib.suppress(FileNotFoundError), (folder / "stack.pid").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            number = file.read().strip()
            return int(number) if number.isdecimal() else None
    return None


def restart(folder: Path) -> str | None:
    """Have the stack of this folder replace its processes, and wait for it.

    Returns why it stopped; empty when all were replaced; None when no stack runs, or it ended meanwhile.
    """
    process, rolls = supervisor_of(folder), _read(folder)
    if process is None or rolls is None:
        return None
    wanted = rolls.begun + 1
    os.kill(process, signal.SIGHUP)
    while supervisor_of(folder) == process:
        rolls = _read(folder)
        if rolls is not None and rolls.ended >= wanted:
            return rolls.stopped
        time.sleep(LOOK_SECONDS)
    return None


def _read(folder: Path) -> Rolls | None:
    with contextlib.suppress(FileNotFoundError):
        return Rolls(**json.loads((folder / "stack.roll").read_text()))
    return None  # it starts, or has ended
