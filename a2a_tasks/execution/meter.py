"""The meter of a run: it writes the usage of models that the agent reports, and checks budgets."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
from typing import NoReturn

from a2a_tasks.agents.faults import BudgetSpent
from a2a_tasks.agents.later import is_running_here
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.execution.turns import RunRequest, request_of
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import budgets
from a2a_tasks.store.budget_room import admit_batched
from a2a_tasks.store.budgets import Amounts, SpentBudget
from a2a_tasks.store.db import TransactionRefused, retry_until_answered
from a2a_tasks.store.prices import find_cost
from a2a_tasks.store.records import ClaimedRun, Spender, UsageEntry
from a2a_tasks.store.usage import write_batched
from a2a_tasks.telemetry.run_counters import count_usage

__all__ = ["Meter"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
#: Maximum number of reports of a run that wait for the database, and of reports in one transaction.
MAX_WAITING, PORTION = 10_000, 100
#: Least and most seconds until the time of a run is charged, if a budget limits it: a process that dies loses no more.
WATCH_SECONDS, CHARGE_SECONDS = 1.0, 60.0


class Meter:
    """The meter of one run. Reports may come from any thread; all else belongs to the event loop.

    Reports are written at once, in order, and not fenced: a run that has lost its task has called the model
    nevertheless. Writing goes on if the run is stopped.
    """

    def __init__(self, run: ClaimedRun, request: RunRequest | None = None) -> None:
        request = request or request_of(run)
        self._run = run
        about = run.scope.agent, request.tenant, request.principal
        # A budget for each task bounds the whole tree of tasks that agents have called.
        self._spender = Spender(*about, request.root or run.task, run.key, run.token)
        self._loop = asyncio.get_running_loop()
        #: The reports that are not written yet.
        self.waiting: list[UsageEntry] = []
        self._flusher: asyncio.Task[None] | None = None
        #: The time up to which the work of the run is charged.
        self._charged_until = self._loop.time()
        #: True while the run only waits for a budget. This time is not charged.
        self.is_idle = False
        #: The budgets that had nothing left after the last report.
        self.spent: list[SpentBudget] = []
        self._timer: asyncio.TimerHandle | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_closed = False
        #: The timeout that ends the agent once a budget refuses the work of the run.
        self.limit = asyncio.timeout(None)
        #: The reason why the run may spend no more.
        self.refusal: BudgetSpent | None = None

    async def close(self) -> None:
        """Write all reports, and the time that the run has taken. Raises TransactionRefused."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
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
        if len(self.waiting) < MAX_WAITING:
            self.waiting.append(entry)
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
        while portion := self.waiting[:PORTION]:
            writing = functools.partial(write_batched, portion)
            self._judge(await retry_until_answered(writing, repeatable=True))
            del self.waiting[: len(portion)]
            for entry in portion:
                used = entry.report
                counts = {
                    "input": used.input_tokens,
                    "output": used.output_tokens,
                    "cached": used.cached_tokens,
                    "cache_write": used.cache_write_tokens,
                }
                count_usage(self._run.scope.agent, used.model, counts, *find_cost(used))

    def _judge(self, spent: list[SpentBudget]) -> None:
        """Refuse more work if the run has reported a call that began when a budget had nothing left.

        The report that uses up the budget, or more than is left, stops nobody: perhaps it is the last one.
        """
        before, self.spent = self.spent, spent
        refusals = [one for one in spent if one.refuses]
        if refusals and any(one.refuses for one in before):
            self._refuse(refusals[0])

    async def settle(self) -> None:
        """Wait until all reports are written. Raises TransactionRefused."""
        while self.waiting:
            await asyncio.shield(self._begin_flush())

    async def find_spent(self) -> list[SpentBudget]:
        """Wait until all reports are written; return the budgets that had nothing left after the last one. Raises BudgetSpent."""
        await self.settle()
        if self.refusal is not None:
            await self._stop(self.refusal)
        return self.spent

    async def admit(self) -> list[SpentBudget]:
        """Wait until all reports are written; return the budgets for which the run has to wait before it begins more work.

        Raises BudgetSpent if a budget refuses the work.
        """
        await self.find_spent()
        if not budgets.list_in_force(self._spender):
            return []
        await self._charge_time(WATCH_SECONDS)
        asking = functools.partial(admit_batched, self._spender)
        spent, seconds = await retry_until_answered(asking, repeatable=True)
        if budgets.is_time_limited(self._spender):
            self._set_timer(seconds)
        for one in spent:
            if one.refuses:
                await self._stop(self._refuse(one))
        if not spent:
            self.spent = []
        return spent

    async def _stop(self, refusal: BudgetSpent) -> NoReturn:
        """Raise the refusal, after the timeout had its turn: an agent that awaits this is cancelled, and cannot go on."""
        await asyncio.sleep(0)
        raise refusal

    def _refuse(self, spent: SpentBudget) -> BudgetSpent:
        """Stop the agent, which may have caught the exception, or may not have waited for it."""
        if self.refusal is None:
            self.refusal = BudgetSpent(budgets.tell(spent))
            with contextlib.suppress(RuntimeError):  # the agent has not begun, or has ended
                self.limit.reschedule(self._loop.time())
        return self.refusal

    # --- the time of the run ------------------------------------------------------------------

    async def _charge_time(self, least: float = 0.0) -> None:
        """Charge the time since the last charge, if it is at least so many seconds."""
        if budgets.is_time_limited(self._spender):
            now = self._loop.time()
            seconds = now - self._charged_until
            if seconds < least and not self.is_idle:
                return
            self._charged_until = now
            if self.is_idle:
                return
            try:
                await budgets.charge_batched((self._spender, Amounts(seconds=seconds)))
            except Overloaded as fault:
                if fault.undone:  # else it may be charged already
                    self._charged_until -= seconds

    def _set_timer(self, seconds: float) -> None:
        """Look again when a budget of seconds could be used up. The runs of a process look at the same times, together."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_closed:
            left = min(seconds, CHARGE_SECONDS) if seconds > 0 else CHARGE_SECONDS
            steps = math.ceil((self._loop.time() + left) / WATCH_SECONDS)
            self._timer = self._loop.call_at(steps * WATCH_SECONDS, self._begin_watch)

    def _begin_watch(self) -> None:
        self._watcher = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        try:
            await self.admit()
        except (Overloaded, TransactionRefused):
            self._set_timer(WATCH_SECONDS)
        except BudgetSpent:
            pass  # the agent is stopped
