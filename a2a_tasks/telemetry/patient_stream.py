"""Standard streams that do not hold up the process when their reader has stopped, or the disk is full.

A terminal stops at Ctrl-S, a pipe when its reader hangs. The event loop, which logs, would stop with it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import select
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from a2a_tasks.telemetry.replaced_stream import ReplacedStream

__all__ = ["PatientStream", "replace_standard_streams", "stderr", "stdout"]

logger = logging.getLogger(__name__)

#: Bytes that wait for the reader. Text beyond them is lost.
MAX_WAITING = 1024 * 1024
#: Seconds a writer waits for the reader, once: a line is out before the next thing happens, which may end the process.
PATIENCE = 0.2


class PatientStream(ReplacedStream):
    """A text stream that a thread of its own writes. Thread-safe; a forked process has a thread of its own."""

    def __init__(self, stream: TextIO) -> None:
        """Write to the descriptor of `stream`."""
        super().__init__(stream)
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._thread: threading.Thread | None = None
        self._lost = 0
        #: A writer has waited in vain, and nothing was read since.
        self._stuck = False
        self._is_ending = False

    def write(self, text: str) -> int:
        """Take text, or lose it if too much waits and nobody reads. Returns the number of characters."""
        piece = text.encode(self.encoding, "backslashreplace")
        if sys.is_finalizing():
            self._put_last(piece)
            return len(text)
        with self._changed:
            if not self._wait(lambda: not self._waiting or self._has_room(piece)):
                self._lost += 1
                return len(text)
            self._waiting += piece
            if self._thread is None:
                self._start()
            self._changed.notify_all()
            if self._is_ending:
                self._wait(lambda: not self._waiting)
        return len(text)

    def _start(self) -> None:
        thread = threading.Thread(target=self._pass_on, name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the process has no thread left, or is ending
            self._put(bytes(self._waiting))
            self._waiting.clear()
        else:
            self._thread = thread

    def flush(self) -> None:
        """Wait until all is written, for PATIENCE at most, and not at all if the one before waited in vain.

        While Python ends, nothing waits: its threads do not run any more, and one of them may hold the lock.
        """
        if not sys.is_finalizing():
            with self._changed:
                self._wait(lambda: not self._waiting)

    def end(self) -> None:
        """Flush, and from now on after each write: the thread that writes does not run any more while Python ends."""
        self._is_ending = True
        self.flush()

    def _has_room(self, piece: bytes) -> bool:
        return len(self._waiting) + len(piece) <= MAX_WAITING

    def _wait(self, is_so: Callable[[], bool]) -> bool:
        if not self._stuck and threading.current_thread() is not self._thread:
            self._stuck = not self._changed.wait_for(is_so, PATIENCE)
        return is_so()

    def _pass_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                piece = bytes(self._waiting)
            written = self._put(piece)
            with self._changed:
                del self._waiting[: len(piece)]
                self._stuck = False
                self._lost += not written
                lost, self._lost = (self._lost, 0) if written else (0, self._lost)
                self._changed.notify_all()
            if lost:
                logger.warning(
                    "%d lines of the log were lost: its reader or disk did not take them", lost
                )

    def _put(self, piece: bytes) -> bool:
        """Write all of it, however long that takes; False if it cannot be written."""
        try:
            while piece:
                try:
                    piece = piece[os.write(self.fileno(), piece) :]
                except BlockingIOError:  # another process has made the descriptor so
                    select.select([], [self.fileno()], [])
        except (OSError, ValueError):  # no disk, no reader; closed
            return False
        return True

    def _put_last(self, piece: bytes) -> None:
        """Write what is printed while Python ends, as far as the reader takes it: a larger write would wait for it."""
        with contextlib.suppress(OSError, ValueError):  # no disk, no reader; closed
            while piece and not self._stuck:
                self._stuck = not select.select([], [self.fileno()], [], PATIENCE)[1]
                if not self._stuck:
                    piece = piece[os.write(self.fileno(), piece[: select.PIPE_BUF]) :]

    def isatty(self) -> bool:
        """Tell whether people read it."""
        return self._stream.isatty()


#: The standard error output, for the log.
stderr = PatientStream(sys.__stderr__ or sys.stderr)
stdout = PatientStream(sys.__stdout__ or sys.stdout)
for each in (stderr, stdout):
    atexit.register(each.end)


def replace_standard_streams() -> None:
    """Print by patient streams from now on, and let the handlers of all loggers do so. Safe to call again.

    A stream that was closed when the process began is None, and stays so.
    """
    loggers = (logging.getLogger(), *logging.Logger.manager.loggerDict.values())
    handlers = [handler for each in loggers for handler in getattr(each, "handlers", ())]
    for name, patient in (("stdout", stdout), ("stderr", stderr)):
        if (original := getattr(sys, f"__{name}__")) is None:
            continue
        with contextlib.suppress(OSError):
            original.flush()  # at its end, Python flushes the new one only
        if getattr(sys, name) is original:
            setattr(sys, name, patient)
        for handler in handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is original:
                handler.setStream(patient)
