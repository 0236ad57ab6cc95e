"""The journal of a turn on the host: steps in the store, in order with the events of the run."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from a2a_tasks.agents import registry
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.agents.faults import AgentError, CallRefused
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.execution import calls
from a2a_tasks.execution.agent_call import RunThreads
from a2a_tasks.execution.meter import Meter
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.slots import SlotLender
from a2a_tasks.execution.turns import find_reach
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import budgets, call_answers, call_trees, steps
from a2a_tasks.store.budgets import SpentBudget
from a2a_tasks.store.db import AGAIN_SECONDS, retry_until_answered, run_in_thread, run_to_completion
from a2a_tasks.store.parking import LAST_SECOND, Parking, park
from a2a_tasks.store.records import ClaimedRun, StepResult
from a2a_tasks.store.tasks import find_state, read_states
from a2a_tasks.telemetry.run_counters import OTHERS, call_seconds, replayed_steps
from a2a_tasks.telemetry.run_counters import calls as call_counter

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
        #: Lends the slot of the run while it waits in memory for other tasks.
        self.lender: SlotLender | None = None
        #: True once the agent has called another one in this attempt, or in an earlier one.
        self.has_called = False
        self._threads = threads or RunThreads(run.scope.agent)
        #: The meter of the run.
        self.meter = meter or Meter(run)
        self._loaded, self._store = False, asyncio.Lock()
        #: The steps that wait for a budget, and whose client was told.
        self._told: set[str] = set()
        #: When the work of each step began, by `time.monotonic`.
        self._began: dict[str, float] = {}

    async def load(self, name: str) -> Mapping[str, str]:
        """Wait for the reports of usage, and read the turn's steps, unless they were read already. Raises Overloaded, BudgetSpent.

        While the lease may have expired, the call waits: a process that was frozen would repeat steps of others. The
        next heartbeat extends the lease, or finds it lost, and the agent is stopped.
        """
        failpoint("worker.step_begins")
        await self.meter.find_spent()
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
            self._recorder.end_repeats()
        if name in self.results:
            replayed_steps.labels(self._run.scope.agent).inc()
        return self.results

    async def look_at_budgets(
        self, name: str, *, waits: bool, parks: bool = False, idle: bool = False
    ) -> bool:
        """Return whether budgets allow more work in this step. Raises BudgetSpent, LeaseLost, Overloaded."""
        if not waits:
            return not await self.meter.find_spent()
        spent = await self.meter.admit()
        self.meter.is_idle = bool(spent) and idle
        if not spent:
            self._told.discard(name)
            self._began[name] = time.monotonic()
            return True
        (first, *_) = spent
        if not parks and (first.reserved or (name in self._told and not first.asks)):
            return False
        waiting = functools.partial(run_to_completion, budgets.begin_wait, first, self._run.task)
        use = await retry_until_answered(waiting, repeatable=True)
        if use is None:  # the budget was changed, and this process does not know it yet
            return False
        if not first.reserved:
            self._tell_wait(name, first)
        if parks:
            until = first.until.timestamp() if first.until else LAST_SECOND
            await self.park(name, until, budget=use)
        return False

    def _tell_wait(self, name: str, spent: SpentBudget) -> None:
        """Tell the client once that the work waits for a budget."""
        if name not in self._told and self._recorder.state not in TERMINAL | INTERRUPTED:
            text = f"{budgets.tell(spent)} The work waits."
            self._recorder.emit(StatusUpdate(TaskState.WORKING, (Part(text=text),)))
            self._told.add(name)

    async def look(self, agent: str, task_id: str) -> tuple[int, str] | None:
        """Find a task of the caller; an empty agent is this one. Raises Overloaded."""
        reach = find_reach(self._run, agent)
        return await retry_until_answered(
            functools.partial(run_in_thread, find_state, reach, task_id), repeatable=True
        )

    async def park(
        self,
        name: str,
        until: float,
        awaits: int | None = None,
        calls: Sequence[str] = (),
        budget: int | None = None,
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
        said = self._recorder.said
        parking = Parking(self._run, name, until, said, awaits, tuple(calls), budget)
        with self._leaving():
            parked = await retry_until_answered(
                functools.partial(run_to_completion, park, parking), repeatable=True
            )
        if not parked:
            return
        if calls:
            with contextlib.suppress(Overloaded):  # a look restates it later
                await run_in_thread(call_trees.restate, self._run.task)
        self._leave()
        await asyncio.Event().wait()  # it is cancelled

    async def begin_call(self, call: WantedCall) -> str | float:
        """Let the host accept a call, after all earlier events and reports of usage.

        Raises CallRefused, AgentError, LeaseLost, Overloaded.
        """
        if self._recorder.state in TERMINAL | INTERRUPTED:
            raise AgentError("An agent that has ended its task, or asked its client, calls nobody.")
        if not (self.parks or self.may_wait):
            raise CallRefused("Too many agents wait for others in this process.")
        await self._recorder.wait_written()
        await self.meter.settle()
        self.has_called = True
        beginning = functools.partial(calls.find().begin, self._run, call)
        try:
            begun = await retry_until_answered(beginning, repeatable=True)
        except CallRefused:
            self._count_call(call.agent, "refused")
            raise
        if isinstance(begun, str):
            self.results[call.name] = begun
        return begun

    def _count_call(self, callee: str, outcome: str, seconds: float | None = None) -> None:
        known = callee if registry.find_hosted(callee) else OTHERS  # agents choose the names
        call_counter.labels(self._run.scope.agent, known, outcome).inc()
        if seconds is not None:
            call_seconds.labels(self._run.scope.agent, known).observe(seconds)

    async def look_at_calls(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the states of tasks by their keys; those that are gone have failed. Raises Overloaded."""
        self.has_called = True
        looking = functools.partial(run_in_thread, read_states, keys)
        return await retry_until_answered(looking, repeatable=True)

    async def read_answer(self, key: int, *, cancels: bool) -> dict[str, Any]:
        """Return the answer of a task, which is cancelled before if it `cancels`. Raises Overloaded."""
        reading = functools.partial(run_in_thread, call_answers.read, key, cancels=cancels)
        answer = await retry_until_answered(reading, repeatable=True)
        self._count_call(
            answer.pop("callee"), TaskState(answer["state"]).word, answer.pop("seconds")
        )
        return answer

    async def follow(self, keys: Collection[int], asking: Collection[int], seconds: float) -> None:
        """Wait until all these tasks have ended, or ask if they are among those `asking`; at most so many seconds."""
        await calls.find().follow(keys, asking, seconds)

    @property
    def may_wait(self) -> bool:
        """True while this process has room for another run that waits in memory for other tasks."""
        return self.lender is None or self.lender.has_room

    def lend_slot(self, *, in_thread: bool) -> AbstractContextManager[None]:
        """Let another run have the slot, and the thread in which the agent waits, as long as the block lasts."""
        if self.lender is None:
            return contextlib.nullcontext()
        return self.lender.lend(in_thread=in_thread)

    async def keep(self, name: str, result: str) -> None:
        """Write a result, after all earlier events and reports of usage. Raises LeaseLost, Overloaded."""
        began = self._began.pop(name, None)
        seconds = None if began is None else time.monotonic() - began
        await self._recorder.wait_written()
        await self.meter.settle()
        writing = asyncio.ensure_future(self._write(StepResult(self._run, name, result, seconds)))
        # If the caller was cancelled, asyncio would log the unretrieved exception at garbage collection.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(writing)

    async def _write(self, step: StepResult) -> None:
        """Write a result. A caller that is cancelled and retries the step waits for this write and finds its result."""
        async with self._store:
            self._loaded = False  # if this fails, the result may be stored
            keeping = functools.partial(steps.keep_batched, step)
            # If the batch does not write it, a write of its own does, or raises the reason.
            if not await retry_until_answered(keeping, repeatable=True):
                alone = functools.partial(run_to_completion, steps.keep, step)
                await retry_until_answered(alone, repeatable=True)
            failpoint("worker.step_kept")
            self.results[step.name], self._loaded = step.result, True

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
