"""The log of a run: what an agent's code tells `logging` while it works is kept with its run, for operators.

It is written every second for all runs of the process together. Nobody waits for that, and what cannot be written is
given up: the process's own log has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import threading
from collections.abc import Callable

from a2a_tasks.conf import conf
from a2a_tasks.execution.hearing import Said
from a2a_tasks.execution.redacting import redacted
from a2a_tasks.outages import Outage
from a2a_tasks.store import run_lines
from a2a_tasks.store.hop import hop
from a2a_tasks.store.records import Assignment
from a2a_tasks.store.run_lines import LONGEST, Line

__all__ = ["Notebook", "RunLog"]

#: Seconds between two writes.
EVERY = 1.0
#: Of a long text, characters from its beginning; the rest comes from its end, where a trace says what it is about.
BEGINNING = 1200

_lost = Outage(logging.getLogger(__name__), "log lines of runs were not kept")


class RunLog:
    """The lines of one attempt that have not been written yet; so many in all, of the rest the number. Any thread."""

    def __init__(self, run: Assignment, due: Callable[[RunLog], None]) -> None:
        """`due` is told when there is something to write, and not again before that was taken."""
        self._run, self._attempt, self._due = run.run, run.attempt, due
        self._lock = threading.Lock()
        self._left, self._missed = int(conf.RUN_LOG_LINES), 0
        self._said: list[Said] = []

    def take(self, said: Said) -> None:
        """Take down a line, or count it."""
        with self._lock:
            if not self._left:
                self._missed += 1
                return
            self._left -= 1
            self._append(said)

    def miss(self, count: int) -> None:
        """Count lines that were not kept elsewhere."""
        with self._lock:
            self._missed += count

    def close(self) -> None:
        """The attempt is over: say how many were not kept."""
        with self._lock:
            if self._missed:
                text = f"… {self._missed} more lines, which were not kept (A2A_RUN_LOG_LINES)"
                now = datetime.datetime.now(datetime.UTC).timestamp()
                self._append(Said(now, logging.WARNING, "", text))
                self._missed = 0

    def _append(self, said: Said) -> None:
        self._said.append(said)
        if len(self._said) == 1:
            self._due(self)

    def taken(self) -> list[tuple[int, int, Said]]:
        """What has not been written, with the run and its attempt; it is forgotten here."""
        with self._lock:
            said, self._said = self._said, []
        return [(self._run, self._attempt, one) for one in said]


class Notebook:
    """Writes the lines of all runs of this loop. Make it in the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = asyncio.Event()
        self._waiting: set[RunLog] = set()
        #: The newest write. It is never cancelled, as it has taken its lines.
        self._writing = self._loop.create_task(self._write())
        self._task = self._loop.create_task(self._for_ever())

    def open(self, run: Assignment) -> RunLog:
        """The log of a run that begins."""
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
        said = [line for log in logs for line in log.taken()]
        if said:
            try:
                await hop(_keep, said)
            except Exception as fault:  # noqa: BLE001 - whatever it is, no run may suffer from it
                _lost.count(fault.__cause__ or fault)

    async def close(self) -> None:
        """Write what there is, then no more."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._writing
        await asyncio.sleep(0)  # what was said last is on its way
        await self._write()


def _keep(said: list[tuple[int, int, Said]]) -> None:
    run_lines.write([_line(*one) for one in said])


def _line(run: int, attempt: int, said: Said) -> Line:
    text = redacted(said.text).replace("\x00", "\\x00").encode(errors="backslashreplace").decode()
    if len(text) > LONGEST:
        text = f"{text[:BEGINNING]}\n…\n{text[BEGINNING + 3 - LONGEST :]}"
    at = datetime.datetime.fromtimestamp(said.at, datetime.UTC)
    return Line(run, attempt, at, said.level, said.logger, text)
