"""Hearing what agents tell `logging`: a handler at the root hands it to whoever listens in that task or thread.

Whose it is, a context variable says, which the tasks and threads of an agent inherit. Without the store, since the
process of an agent has none.
"""

from __future__ import annotations

import contextlib
import logging
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from a2a_tasks.conf import conf

__all__ = ["Ear", "Said", "current", "install"]

#: Loggers of the host itself. What it does for a run is no word of the agent, and writing lines must not make lines.
OURS = ("a2a_tasks.", "a2a_push.", "a2a_project.", "django.db.")
#: Characters of a text that are taken from its beginning, and from its end: more than is kept, so that no secret is cut in two.
EACH_END = 2000

_formatter = logging.Formatter("%(message)s")


class Said(NamedTuple):
    """A line as it was said, with its secrets."""

    at: float
    level: int
    logger: str
    text: str


class Ear(Protocol):
    """Who takes what is said."""

    def take(self, said: Said) -> None:
        """Any thread; must not block."""

    def miss(self, count: int) -> None:
        """So many more were said, and not kept."""


#: Who takes what is said here, in the agent's tasks and threads.
current: ContextVar[Ear | None] = ContextVar("a2a_run_log", default=None)


class _Handler(logging.Handler):
    """Hands what is said in a run to its ear."""

    def createLock(self) -> None:  # noqa: N802 - its name in logging
        """Without one: an agent may be interrupted anywhere, and must not take a lock with it."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take it, if it is an agent's. What cannot be formatted, other handlers complain of."""
        ear = current.get()
        if ear is None or record.name.startswith(OURS):
            return
        with contextlib.suppress(Exception):
            ear.take(Said(record.created, record.levelno, record.name, _text(record)))


def _text(record: logging.LogRecord) -> str:
    """Its text, with its trace."""
    text = _formatter.format(record)
    return text if len(text) <= 2 * EACH_END else f"{text[:EACH_END]}\n{text[-EACH_END:]}"


_handler = _Handler()


def install() -> None:
    """Have the root logger hand on what agents say, as A2A_RUN_LOG_LEVEL wants it. Again and again does no harm."""
    root, level = logging.getLogger(), str(conf.RUN_LOG_LEVEL)
    root.removeHandler(_handler)
    if level != "OFF":
        _handler.setLevel(level)
        root.addHandler(_handler)
