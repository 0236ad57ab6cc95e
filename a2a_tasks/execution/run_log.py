"""The log of a run: lines that an agent's code logs with `logging` are stored with its run, for operators.

They are written every second for all runs of the process together. No run waits for that. Lines that cannot be written
are dropped: the process's own log has them.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import threading
from collections.abc import Callable

from a2a_tasks.conf import conf
from a2a_tasks.execution.run_log_handler import LogLine
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.store import run_lines
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.run_lines import MAX_LENGTH, RunLogLine
from a2a_tasks.telemetry.redaction import redact

__all__ = ["RunLogWriter", "RunLog"]

#: Seconds between two writes.
EVERY = 1.0
#: Characters from the start of a long text; the rest comes from its end, where a trace names the exception.
BEGINNING = 1200

_lost = ThrottledLogger(logging.getLogger(__name__), "log lines of runs were not stored")


class RunLog:
    """The unwritten lines of one attempt; lines beyond A2A_RUN_LOG_LINES per attempt are counted. Thread-safe."""

    def __init__(self, run: ClaimedRun, due: Callable[[RunLog], None]) -> None:
        """Make a log; `due` is called when it has lines to write, and not again before they were taken."""
        self._run, self._attempt, self._due = run.key, run.attempt, due
        self._lock = threading.Lock()
        self._left, self._missed = int(conf.RUN_LOG_LINES), 0
        self._lines: list[LogLine] = []

    def take(self, line: LogLine) -> None:
        """Add a line, or count it if the log is full."""
        with self._lock:
            if not self._left:
                self._missed += 1
                return
            self._left -= 1
            self._append(line)

    def count_dropped(self, count: int) -> None:
        """Count lines that were not kept elsewhere."""
        with self._lock:
            self._missed += count

    def close(self) -> None:
        """End the log: add a line with the number of lines that were not kept."""
        with self._lock:
            if self._missed:
                text = f"… {self._missed} more lines, which were not stored (A2A_RUN_LOG_LINES)"
                now = datetime.datetime.now(datetime.UTC).timestamp()
                self._append(LogLine(now, logging.WARNING, "", text))
                self._missed = 0

    def _append(self, line: LogLine) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            self._due(self)

    def take_lines(self) -> list[tuple[int, int, LogLine]]:
        """Take the lines that are not written yet, with the run and its attempt."""
        with self._lock:
            lines, self._lines = self._lines, []
        return [(self._run, self._attempt, one) for one in lines]


class RunLogWriter:
    """The writer of the lines of all runs of an event loop. Must be made in the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = asyncio.Event()
        self._waiting: set[RunLog] = set()
        #: The newest write. It is never cancelled, since it has taken its lines.
        self._writing = self._loop.create_task(self._write())
        self._task = self._loop.create_task(self._for_ever())

    def open(self, run: ClaimedRun) -> RunLog:
        """Open the log of a run that starts."""
        return RunLog(run, self._wait)

    def _wait(self, log: RunLog) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._note, log)

    def _note(self, log: RunLog) -> None:
        self._waiting.add(log)
        self._due.set()

    async def _for_ever(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(EVERY)
            self._due.clear()
            self._writing = self._loop.create_task(self._write())
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        logs, self._waiting = self._waiting, set()
        lines = [line for log in logs for line in log.take_lines()]
        if lines:
            try:
                await run_in_thread(_keep, lines)
            except Exception as fault:  # noqa: BLE001 - no failure of the log may affect a run
                _lost.warning(fault.__cause__ or fault)

    async def close(self) -> None:
        """Write the remaining lines, and stop."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._writing
        await asyncio.sleep(0)  # the last call of `_note` is scheduled
        await self._write()


def _keep(lines: list[tuple[int, int, LogLine]]) -> None:
    run_lines.write([_line(*one) for one in lines])


def _line(run: int, attempt: int, line: LogLine) -> RunLogLine:
    text = redact(line.text).replace("\x00", "\\x00").encode(errors="backslashreplace").decode()
    if len(text) > MAX_LENGTH:
        text = f"{text[:BEGINNING]}\n…\n{text[BEGINNING + 3 - MAX_LENGTH :]}"
    at = datetime.datetime.fromtimestamp(line.at, datetime.UTC)
    return RunLogLine(run, attempt, at, line.level, line.logger, text)
