"""The journal of a turn that the host carries: steps in the store, in order with the events of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from a2a_tasks.agents.steps import Journal
from a2a_tasks.execution.drive import in_thread
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.store import steps
from a2a_tasks.store.hop import hop
from a2a_tasks.store.records import Assignment

__all__ = ["StoredJournal"]


class StoredJournal(Journal):
    """Reads what earlier attempts kept at the first step, once; writes each result at once, fenced."""

    def __init__(self, run: Assignment, recorder: Recorder) -> None:
        super().__init__()
        self._run, self._recorder = run, recorder
        self._loaded, self._store = False, asyncio.Lock()

    async def load(self) -> None:
        """Read the turn's steps, if that has not been done. Raises Overloaded."""
        async with self._store:
            if not self._loaded:
                self.results.update(await hop(steps.kept, self._run.task, self._run.input_number))
                self._loaded = True

    async def keep(self, name: str, result: str) -> None:
        """Write a result, after everything said before it. Raises Fenced, Overloaded."""
        await self._recorder.written()
        await asyncio.shield(self._write(name, result))

    async def _write(self, name: str, result: str) -> None:
        """Whoever stopped waiting and tries the step again waits for this, and finds what came of it."""
        async with self._store:
            self._loaded = False  # if this fails, only the store knows whether it has the result
            await hop(steps.keep, self._run, name, result)
            self.results[name], self._loaded = result, True

    async def clock(self) -> float:
        """The database's clock. Raises Overloaded."""
        return await hop(steps.clock)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call it in a thread of the agents' pool."""
        return await in_thread(work)
