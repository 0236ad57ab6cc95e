"""Waits of an agent that continue after its process died, and that hold no slot if they are long.

A short wait is in memory. During a long one the run is parked (store/parking.py): the agent is stopped, and its `run` is
called again when the wait is over.
"""

from __future__ import annotations

import asyncio
import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from a2a_tasks.agents.faults import AgentError
from a2a_tasks.agents.steps import DurableStep, Journal
from a2a_tasks.conf import conf
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["Sleep", "TaskWait"]

T = TypeVar("T")


class _Wait(ABC, Generic[T]):
    """A wait whose time of waking is stored: awaited, or in a synchronous agent called with `now`."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        name: str,
        length: float | datetime.datetime,
        used: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Make a wait of some seconds, or until a moment; `used` is called with it when it is awaited or waited for.

        Raises ValueError for a moment without a time zone.
        """
        if isinstance(length, datetime.datetime) and length.tzinfo is None:
            raise ValueError("the moment of waking needs a time zone")
        self._journal, self._loop, self._name, self._length = journal, loop, name, length
        self._used = used

    def __await__(self) -> Generator[Any, None, T]:
        self._used(self)
        return self._wait(alone=False).__await__()

    def now(self) -> T:
        """Wait in a thread; CancelledError wakes it. RuntimeError on the event loop's own thread."""
        self._used(self)
        return self._journal.wait(self._loop, lambda: self._wait(alone=True))

    async def _wait(self, *, alone: bool) -> T:
        """Wait. `alone`: the agent itself is blocked; otherwise the wait parks the run only in the task that runs the agent."""
        journal, length = self._journal, self._length
        parks = journal.parks and (alone or asyncio.current_task() is journal.task)
        now = await journal.clock()

        async def compute_wake_time() -> float:
            return length.timestamp() if isinstance(length, datetime.datetime) else now + length

        until = await DurableStep(journal, self._loop, self._name, compute_wake_time)
        if isinstance(length, datetime.datetime):  # a moment is the same after the clock was set
            until = length.timestamp()
        journal.waiting += 1
        try:
            return await self._wait_until(now, until, parks=parks, alone=alone)
        finally:
            journal.waiting -= 1

    @abstractmethod
    async def _wait_until(self, now: float, until: float, *, parks: bool, alone: bool) -> T:
        """Wait from now until a time of the clock."""


class Sleep(_Wait[None]):
    """A wait for a time."""

    async def _wait_until(self, now: float, until: float, *, parks: bool, alone: bool) -> None:
        # While the agent does something else, look again from time to time.
        journal, short = self._journal, float(conf.PARK_SECONDS)
        while parks and until - now > short:
            if journal.is_idle:
                await journal.park(self._name, until)
            await journal.pause(short)
            now = await journal.clock()
        await journal.pause(max(0.0, until - now))


class TaskWait(_Wait[TaskState]):
    """A wait for another task: until it has ended or asks its client, or until the time is over. Returns its state."""

    def __init__(self, agent: str, task_id: str, *about: Any) -> None:
        """Make a wait for the task of an agent; the other arguments are those of `Sleep`."""
        super().__init__(*about)
        self._agent, self._task_id = agent, task_id

    async def _wait_until(self, now: float, until: float, *, parks: bool, alone: bool) -> TaskState:
        name, state = f"{self._name}: state", ""
        if name not in self._journal.results:
            with self._journal.lend_slot(in_thread=alone):
                state = await self._look(now, until, parks=parks)

        async def get_state() -> str:
            return state

        return TaskState(await DurableStep(self._journal, self._loop, name, get_state))

    async def _look(self, now: float, until: float, *, parks: bool) -> str:
        """Return the state of the task when it has ended or asks its client, or when the time is over. Raises AgentError."""
        journal, short = self._journal, float(conf.PARK_SECONDS)
        patient_from = now + short
        while True:
            found = await journal.look(self._agent, self._task_id)
            if found is None:
                raise AgentError(f"There is no task {self._task_id} to wait for.")
            key, state = found
            if TaskState(state) in TERMINAL | INTERRUPTED or now >= until:
                return state
            patience = patient_from - now
            if parks and (patience <= 0 or not journal.may_wait) and journal.is_idle:
                await journal.park(self._name, until, key)
            pause = patience if patience > 0 else short
            await journal.follow([key], [key], min(pause, until - now))
            now = await journal.clock()
