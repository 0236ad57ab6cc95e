"""Printed lines as log records, so that a log in JSON has nothing but JSON."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any, TextIO

from a2a_tasks.conf import conf
from a2a_tasks.telemetry.replaced_stream import ReplacedStream

__all__ = ["PrintedLines", "log_printed_lines"]

#: Maximum number of characters that are kept of a line that has not ended.
MAX_LENGTH = 64 * 1024


class _LineBuffer(threading.local):
    """The beginning of the line that a thread is printing."""

    line = ""
    #: True while a line is logged: text that a handler prints meanwhile is not.
    busy = False


class PrintedLines(ReplacedStream):
    """A text stream whose lines become entries of a logger. Thread-safe."""

    def __init__(self, stream: TextIO, name: str, level: int) -> None:
        """Replace `stream`, but keep its file descriptor; `name` is that of the logger."""
        super().__init__(stream)
        self._logger, self._level = logging.getLogger(name), level
        self._printed = _LineBuffer()

    def write(self, text: str) -> int:
        """Add text, and log each line that has ended. Returns the number of characters."""
        printed = self._printed
        # While Python ends, a thread that does not run any more may hold a lock of the log.
        if printed.busy or sys.is_finalizing():
            return self._stream.write(text)
        *lines, printed.line = (printed.line + text).split("\n")
        if len(printed.line) > MAX_LENGTH:
            lines, printed.line = [*lines, printed.line], ""
        printed.busy = True
        try:
            for line in filter(None, map(str.rstrip, lines)):
                self._logger.log(self._level, "%s", line)
        finally:
            printed.busy = False
        return len(text)

    def flush(self) -> None:
        """Flush the replaced stream: it may have text from before."""
        self._stream.flush()


def log_printed_lines() -> None:
    """Log printed lines, warnings and uncaught exceptions from now on, if A2A_LOG_FORMAT is json."""
    if conf.LOG_FORMAT != "json" or isinstance(sys.stderr, PrintedLines):
        return
    logging.captureWarnings(True)
    sys.stdout = PrintedLines(sys.stdout, "stdout", logging.INFO)
    sys.stderr = PrintedLines(sys.stderr, "stderr", logging.WARNING)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def _log_uncaught(kind: Any, fault: Any, trace: Any) -> None:
    logging.getLogger("stderr").critical("uncaught exception", exc_info=(kind, fault, trace))


def _log_uncaught_in_thread(about: Any) -> None:
    if about.exc_type is not SystemExit:
        _log_uncaught(about.exc_type, about.exc_value, about.exc_traceback)
