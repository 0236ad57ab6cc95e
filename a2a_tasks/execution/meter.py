"""The meter of a run: it writes the usage of models that the agent reports, and checks budgets."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging

from a2a_tasks.agents.faults import BudgetSpent
from a2a_tasks.agents.later import is_running_here
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.execution.turns import read_run_request
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import budgets
from a2a_tasks.store.budgets import Amounts, SpentBudget
from a2a_tasks.store.db import (
    TransactionRefused,
    retry_until_answered,
    run_in_thread,
)
from a2a_tasks.store.prices import find_cost
from a2a_tasks.store.records import ClaimedRun, Spender, UsageEntry
from a2a_tasks.store.usage import write_batched
from a2a_tasks.telemetry.run_counters import count_usage

__all__ = ["Meter"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
#: Maximum number of reports of a run that wait for the database, and of reports in one transaction.
MAX_WAITING, PORTION = 10_000, 100
#: Seconds between two charges for the time of a run, if a budget limits it.
WATCH_SECONDS = 1.0


class Meter:
    """The meter of one run. Reports may come from any thread; all else belongs to the event loop.

    Reports are written at once, in order, and not fenced: a run that has lost its task has called the model
    nevertheless. Writing goes on if the run is stopped.
    """

    def __init__(self, run: ClaimedRun) -> None:
        request = read_run_request(run.request or "{}")
        self._run = run
        self._spender = Spender(run.scope.agent, request.tenant, request.principal, run.task)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[UsageEntry] = []
        self._flusher: asyncio.Task[None] | None = None
        #: The time up to which the work of the run is charged.
        self._charged_until = self._loop.time()
        #: True while the run only waits for a budget. This time is not charged.
        self.is_idle = False
        self._watcher: asyncio.Task[None] | None = None
        #: The timeout that ends the agent once a budget refuses the work of the run.
        self.limit = asyncio.timeout(None)
        #: The reason why the run may spend no more.
        self.refusal: BudgetSpent | None = None

    def start(self) -> None:
        """Begin to watch the time of the run, if a budget limits it."""
        if budgets.is_time_limited(self._spender):
            self._watcher = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Write all reports, and the time that the run has taken. Raises TransactionRefused."""
        if self._watcher is not None:
            self._watcher.cancel()
        await self.settle()
        await self._charge_time()

    def report(self, used: UsageReport) -> None:
        """Take a report, and begin to write it. Thread-safe."""
        entry = UsageEntry(self._run, self._spender, used)
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
            # A run that was stopped does not await the task, so its exception is retrieved here.
            self._flusher.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._flusher

    async def _flush(self) -> None:
        while portion := self._waiting[:PORTION]:
            try:
                writing = functools.partial(write_batched, portion)
                await retry_until_answered(writing, repeatable=True)
            except BudgetSpent as refusal:  # the reports are written
                self._refuse(refusal)
            del self._waiting[: len(portion)]
            for entry in portion:
                used = entry.report
                counts = used.input_tokens, used.output_tokens
                count_usage(self._run.scope.agent, used.model, *counts, *find_cost(used))

    async def settle(self) -> None:
        """Wait until all reports are written. Raises TransactionRefused."""
        while self._waiting:
            await asyncio.shield(self._begin_flush())

    async def look(self) -> list[SpentBudget]:
        """Wait until all reports are written; return the budgets for which the run has to wait.

        It is called before every step, and by `await turn.usage(...)`. Raises BudgetSpent if a budget refuses the work.
        """
        await self.settle()
        if self.refusal is not None:
            raise self.refusal
        if not budgets.list_in_force(self._spender):
            return []
        await self._charge_time()
        reading = functools.partial(run_in_thread, budgets.find_spent, self._spender)
        spent = await retry_until_answered(reading, repeatable=True)
        for one in spent:
            if one.refuses:
                raise self._refuse(BudgetSpent(budgets.tell(one)))
        return spent

    def _refuse(self, refusal: BudgetSpent) -> BudgetSpent:
        """Stop the agent, which may have caught the exception, or may not have waited for it."""
        if self.refusal is None:
            self.refusal = refusal
            with contextlib.suppress(RuntimeError):  # the agent has not begun, or has ended
                self.limit.reschedule(self._loop.time())
        return self.refusal

    async def _charge_time(self) -> None:
        if budgets.is_time_limited(self._spender):
            now = self._loop.time()
            seconds, self._charged_until = now - self._charged_until, now
            if self.is_idle:
                return
            try:
                await budgets.charge_batched((self._spender, Amounts(seconds=seconds)))
            except Overloaded as fault:
                if fault.undone:  # else it may be charged already
                    self._charged_until -= seconds

    async def _watch(self) -> None:
        while self.refusal is None:
            await asyncio.sleep(WATCH_SECONDS)
            with contextlib.suppress(BudgetSpent, Overloaded, TransactionRefused):
                await self.look()
