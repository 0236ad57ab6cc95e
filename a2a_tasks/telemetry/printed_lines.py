"""Printed lines as log records, so that a log in JSON has nothing but JSON."""

from __future__ import annotations

import io
import logging
import sys
import threading
from typing import Any, TextIO

from a2a_tasks.conf import conf

__all__ = ["PrintedLines", "log_printed_lines"]

#: Maximum number of characters that are kept of a line that has not ended.
MAX_LENGTH = 64 * 1024


class _Printed(threading.local):
    """The beginning of the line that a thread is printing."""

    line = ""
    #: True while a line is logged: text that a handler prints meanwhile is not.
    busy = False


class PrintedLines(io.TextIOBase):
    """A text stream whose lines become entries of a logger. Thread-safe."""

    def __init__(self, stream: TextIO, name: str, level: int) -> None:
        """Replace `stream`, but keep its file descriptor; `name` is that of the logger."""
        self._stream, self._logger, self._level = stream, logging.getLogger(name), level
        self._printed = _Printed()

    def write(self, text: str) -> int:
        """Add text, and log each line that has ended. Returns the number of characters."""
        printed = self._printed
        if printed.busy:
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

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the replaced stream, for child processes."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the replaced stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """The handling of characters that the replaced stream cannot encode."""
        return self._stream.errors

    @property
    def buffer(self) -> Any:
        """The bytes of the replaced stream; those written there are not logged."""
        return self._stream.buffer


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
