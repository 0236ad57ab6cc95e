"""The journal of a turn that the host carries: steps in the store, in order with the events of the run."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from a2a_tasks.agents.steps import Journal
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.workplace import Workplace
from a2a_tasks.failpoints import failpoint
from a2a_tasks.store import steps
from a2a_tasks.store.hop import AGAIN_SECONDS, outcome, until_answered
from a2a_tasks.store.records import Assignment

__all__ = ["StoredJournal"]


class StoredJournal(Journal):
    """Reads what earlier attempts kept at the first step, once; writes each result at once, fenced."""

    def __init__(
        self,
        run: Assignment,
        recorder: Recorder,
        workplace: Workplace | None = None,
        *,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        """`holds`: is it certain, by this process's clock, that nobody else can have the run?"""
        super().__init__()
        self._run, self._recorder, self._holds = run, recorder, holds
        self._workplace = workplace or Workplace(run.scope.agent)
        self._loaded, self._store = False, asyncio.Lock()

    async def load(self) -> None:
        """Read the turn's steps, if that has not been done. Raises Overloaded.

        While the lease may be over it waits: a process that was frozen would take steps that others have taken since.
        The next heartbeat extends the lease, or finds that it is lost, and the agent is stopped.
        """
        failpoint("worker.step_begins")
        async with self._store:
            if not self._loaded:
                turn = (self._run.task, self._run.input_number)
                self.results.update(
                    await until_answered(functools.partial(steps.loading, turn), repeatable=True)
                )
                self._loaded = True
        while not self._holds():  # noqa: ASYNC110 - a clock is asked, which sets no event
            await asyncio.sleep(AGAIN_SECONDS)

    async def keep(self, name: str, result: str) -> None:
        """Write a result, after everything said before it. Raises Fenced, Overloaded."""
        await self._recorder.written()
        await asyncio.shield(self._write(name, result))

    async def _write(self, name: str, result: str) -> None:
        """Whoever stopped waiting and tries the step again waits for this, and finds what came of it."""
        async with self._store:
            self._loaded = False  # if this fails, only the store knows whether it has the result
            kept = (self._run, name, result)
            keeping = functools.partial(steps.keeping, kept)
            if not await until_answered(keeping, repeatable=True):  # why not, it says by itself
                alone = functools.partial(outcome, steps.keep, *kept)
                await until_answered(alone, repeatable=True)
            failpoint("worker.step_kept")
            self.results[name], self._loaded = result, True

    async def clock(self) -> float:
        """The database's clock. Raises Overloaded."""
        return await until_answered(functools.partial(steps.telling, None), repeatable=True)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call it in a thread for agents."""
        return await self._workplace.in_thread(work)
