"""A handler of the root logger that passes log lines of agents to the log of their run.

A context variable names that log; the tasks and threads of an agent inherit it. This module does not use the store,
since the process of an agent has none.
"""

from __future__ import annotations

import contextlib
import logging
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from a2a_tasks.conf import conf

__all__ = ["LogSink", "LogLine", "current", "install"]

#: Loggers of the host itself: their lines are not the agent's, and writing lines must not create lines.
PACKAGES = "tasks", "push", "project", "console", "host", "frameworks", "grpc", "doors"
OURS = (*(f"a2a_{package}." for package in PACKAGES), "django.db.")
#: Characters of a long text that are taken from its start, and from its end. These are more than are stored, so that no
#: secret is cut in two before its redaction.
EACH_END = 2000

_formatter = logging.Formatter("%(message)s")


class LogLine(NamedTuple):
    """A log line before redaction, with its secrets."""

    at: float
    level: int
    logger: str
    text: str


class LogSink(Protocol):
    """A receiver of log lines."""

    def take(self, line: LogLine) -> None:
        """Add a line. Any thread; must not block."""

    def count_dropped(self, count: int) -> None:
        """Count lines that were not kept."""


#: The log of the present run, in the agent's tasks and threads.
current: ContextVar[LogSink | None] = ContextVar("a2a_run_log", default=None)


class _Handler(logging.Handler):
    """A handler that passes lines to the log of the present run."""

    def createLock(self) -> None:  # noqa: N802 - the name in logging
        """Create a lock that does nothing: the logs of runs are thread-safe. Python 3.13 enters it, older ones acquire it."""
        self.lock = contextlib.nullcontext()  # type: ignore[assignment]

    def acquire(self) -> None:
        """Do nothing."""

    release = acquire

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record of an agent. Other handlers report records that cannot be formatted."""
        ear = current.get()
        if ear is None or record.name.startswith(OURS):
            return
        with contextlib.suppress(Exception):
            name = record.name[:EACH_END]
            ear.take(LogLine(record.created, record.levelno, name, _text(record)))


def _text(record: logging.LogRecord) -> str:
    """Return the text of a record, with its trace."""
    text = _formatter.format(record)
    return text if len(text) <= 2 * EACH_END else f"{text[:EACH_END]}\n{text[-EACH_END:]}"


_handler = _Handler()


def install() -> None:
    """Add the handler to the root logger, for lines from A2A_RUN_LOG_LEVEL up. Safe to call again."""
    root, level = logging.getLogger(), str(conf.RUN_LOG_LEVEL)
    root.removeHandler(_handler)
    if level != "OFF":
        _handler.setLevel(level)
        root.addHandler(_handler)
