"""The journal of a turn on the host: steps in the store, in order with the events of the run."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.execution.meter import Meter
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.run_threads import RunThreads
from a2a_tasks.execution.turns import find_reach
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import budgets, steps
from a2a_tasks.store.db import (
    AGAIN_SECONDS,
    retry_until_answered,
    run_in_thread,
    run_to_completion,
)
from a2a_tasks.store.parking import LAST_SECOND, Parking, park
from a2a_tasks.store.records import ClaimedRun, StepResult
from a2a_tasks.store.tasks import find_state
from a2a_tasks.telemetry.run_counters import replayed_steps

__all__ = ["StoredJournal"]


class StoredJournal(Journal):
    """A journal that reads earlier results once, at the first step, and writes each result at once, fenced."""

    def __init__(
        self,
        run: ClaimedRun,
        recorder: Recorder,
        threads: RunThreads | None = None,
        *,
        meter: Meter | None = None,
        holds: Callable[[], bool] = lambda: True,
        leave: Callable[[], None] | None = None,
        leaving: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        acts_once: bool = False,
    ) -> None:
        """Make a journal; `holds` returns True while it is certain that no other process has the run, by this process's clock.

        `leaving` returns a context for the time in which the run is being parked; `leave` stops it here after that, and
        None = it is never parked. One that `acts_once` is parked only before its agent begins.
        """
        super().__init__()
        self._run, self._recorder, self._holds = run, recorder, holds
        self._leave, self._leaving = leave, leaving
        self.parks, self.task = leave is not None and not acts_once, asyncio.current_task()
        self._threads = threads or RunThreads(run.scope.agent)
        #: The meter of the run.
        self.meter = meter or Meter(run)
        self._loaded, self._store = False, asyncio.Lock()
        #: The steps that wait for a budget, and whose client was told.
        self._told: set[str] = set()

    async def load(self, name: str) -> None:
        """Wait for the reports of usage, and read the turn's steps, unless they were read already. Raises Overloaded, BudgetSpent.

        While the lease may have expired, the call waits: a process that was frozen would repeat steps of others. The
        next heartbeat extends the lease, or finds it lost, and the agent is stopped.
        """
        failpoint("worker.step_begins")
        await self.meter.look()
        async with self._store:
            if not self._loaded:
                turn = (self._run.task, self._run.input_number)
                self.results.update(
                    await retry_until_answered(
                        functools.partial(steps.load_batched, turn), repeatable=True
                    )
                )
                self._loaded = True
        while not self._holds():  # noqa: ASYNC110 - the condition is a clock, which sets no event
            await asyncio.sleep(AGAIN_SECONDS)
        if name == self._run.parked_in:
            self._recorder.repeats = 0
        if name in self.results:
            replayed_steps.labels(self._run.scope.agent).inc()

    async def look_at_budgets(
        self, name: str, *, waits: bool, parks: bool = False, idle: bool = False
    ) -> bool:
        """Return whether budgets allow more work in this step. Raises BudgetSpent, LeaseLost, Overloaded."""
        spent = await self.meter.look()
        self.meter.is_idle = bool(spent) and idle
        if not spent or not waits:
            self._told.discard(name)
            return not spent
        if name in self._told and not (parks or spent[0].asks):
            return False
        waiting = functools.partial(run_to_completion, budgets.begin_wait, spent[0], self._run.task)
        use = await retry_until_answered(waiting, repeatable=True)
        if use is None:  # the budget was changed, and this process does not know it yet
            return False
        if name not in self._told and self._recorder.state not in TERMINAL | INTERRUPTED:
            text = f"{budgets.tell(spent[0])} The work waits."
            self._recorder.emit(StatusUpdate(TaskState.WORKING, (Part(text=text),)))
            self._told.add(name)
        if parks:
            until = spent[0].until.timestamp() if spent[0].until else LAST_SECOND
            await self.park(name, until, budget=use)
        return False

    async def look(self, agent: str, task_id: str) -> tuple[int, str] | None:
        """Find a task of the caller; an empty agent is this one. Raises Overloaded."""
        reach = find_reach(self._run, agent)
        return await retry_until_answered(
            functools.partial(run_in_thread, find_state, reach, task_id), repeatable=True
        )

    async def park(
        self, name: str, until: float, awaits: int | None = None, budget: int | None = None
    ) -> None:
        """Park the run, after all earlier events, and stop the agent. Raises LeaseLost, Overloaded.

        Returns if the run may not be parked, or not now: its task has ended, or asks the client.
        """
        if (
            self._leave is None
            or not (self.parks or name == "")
            or self._recorder.state in TERMINAL | INTERRUPTED
        ):
            return
        await self._recorder.wait_written()
        parking = Parking(self._run, name, until, self._recorder.said, awaits, budget)
        with self._leaving():
            parked = await retry_until_answered(
                functools.partial(run_to_completion, park, parking), repeatable=True
            )
        if not parked:
            return
        self._leave()
        await asyncio.Event().wait()  # it is cancelled

    async def keep(self, name: str, result: str) -> None:
        """Write a result, after all earlier events and reports of usage. Raises LeaseLost, Overloaded."""
        await self._recorder.wait_written()
        await self.meter.settle()
        writing = asyncio.ensure_future(self._write(name, result))
        # If the caller was cancelled, asyncio would log the unretrieved exception at garbage collection.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(writing)

    async def _write(self, name: str, result: str) -> None:
        """Write a result. A caller that is cancelled and retries the step waits for this write and finds its result."""
        async with self._store:
            self._loaded = False  # if this fails, the result may be stored
            step = StepResult(self._run, name, result)
            keeping = functools.partial(steps.keep_batched, step)
            # If the batch does not write it, a write of its own does, or raises the reason.
            if not await retry_until_answered(keeping, repeatable=True):
                alone = functools.partial(run_to_completion, steps.keep, step)
                await retry_until_answered(alone, repeatable=True)
            failpoint("worker.step_kept")
            self.results[name], self._loaded = result, True

    def report(self, used: UsageReport) -> None:
        """Begin to write a report of usage. Thread-safe."""
        self.meter.report(used)

    async def clock(self) -> float:
        """Return the time of the database's clock. Raises Overloaded."""
        return await retry_until_answered(
            functools.partial(steps.read_clock_batched, None), repeatable=True
        )

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call a function in a thread for agents."""
        return await self._threads.in_thread(work)
