"""The meter of a run: it writes the usage of models that the agent reports, and stops an agent whose budget is spent."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging

from a2a_tasks.agents.faults import BudgetSpent
from a2a_tasks.agents.later import is_running_here
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.execution.turns import read_run_request
from a2a_tasks.store.db import retry_until_answered
from a2a_tasks.store.records import ClaimedRun, UsageEntry
from a2a_tasks.store.usage import write_batched
from a2a_tasks.telemetry.run_counters import count_usage

__all__ = ["Meter"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
#: Most reports of a run that wait for the database, and most in one transaction.
MAX_WAITING, PORTION = 10_000, 100


class Meter:
    """The meter of one run. Reports may come from any thread; all else belongs to the event loop.

    Reports are written at once, in order, and not fenced: a run that has lost its task has spent all the same. Writing
    goes on if the run is stopped.
    """

    def __init__(self, run: ClaimedRun) -> None:
        self._run, self._caller = run, read_run_request(run.request or "{}").principal
        self._loop = asyncio.get_running_loop()
        self._waiting: list[UsageEntry] = []
        self._flusher: asyncio.Task[None] | None = None
        #: The reason why the run may spend no more.
        self.spent: BudgetSpent | None = None

    def report(self, used: UsageReport) -> None:
        """Take a report, and begin to write it. Thread-safe."""
        entry = UsageEntry(self._run, self._caller, used)
        if is_running_here(self._loop):
            self._take(entry)
        else:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._take, entry)

    def _take(self, entry: UsageEntry) -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(entry)
        else:
            logger.warning("turn.usage: not counted, because %d reports wait", MAX_WAITING)
        self._begin_flush()

    def _begin_flush(self) -> asyncio.Task[None]:
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
            # A run that was stopped does not ask for the failure, so it is retrieved here.
            self._flusher.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._flusher

    async def _flush(self) -> None:
        while portion := self._waiting[:PORTION]:
            try:
                writing = functools.partial(write_batched, portion)
                await retry_until_answered(writing, repeatable=True)
            except BudgetSpent as spent:  # the reports are written
                self.spent = spent
            del self._waiting[: len(portion)]
            for entry in portion:
                used = entry.report
                counts = used.input_tokens, used.output_tokens
                count_usage(self._run.scope.agent, used.model, *counts, used.cost, used.currency)

    async def settle(self) -> None:
        """Wait until all reports are written. Raises TransactionRefused."""
        while self._waiting:
            await asyncio.shield(self._begin_flush())

    async def check(self, step: str = "") -> None:
        """Wait until all reports are written, then check that the run may go on, with the step of this name.

        It is called before every step, and by `await turn.usage(...)`. Raises BudgetSpent.
        """
        await self.settle()
        if self.spent is not None:
            raise self.spent
