"""Durable steps: their results are stored, so that they are not repeated when the process of the turn dies.

A journal belongs to one turn and its event loop. The subclass of the host (execution/journal) keeps results in the
store. docs/agents/steps.md is the guide.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from a2a_tasks.agents.author_errors import keepable
from a2a_tasks.agents.faults import CallRefused
from a2a_tasks.agents.later import begin_on
from a2a_tasks.agents.usage import UsageReport, begin_step, unwrap
from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.conf import conf
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.step_span import note_replay, step_span

__all__ = ["FAILED", "FAILURES", "DurableStep", "Journal"]

T = TypeVar("T")
#: Longest name of a step, in characters.
MAX_NAME_LENGTH = 200
#: The logger of steps that raise, and the form of its lines. They count as lines of the agent, since the log of a run
#: takes no lines of the host's own.
FAILURES = "a2a.steps"
FAILED = re.compile(r"step (.+) failed after (\d+\.\d{3}) s: (.*)", re.DOTALL)
_failures = logging.getLogger(FAILURES)
#: Longest text of an exception in such a line, in characters.
MAX_FAULT_LENGTH = 500
#: A wait for a budget in memory looks again after POLL_SECONDS, and later after this many of them.
PATIENCE = 5


class Journal:
    """Results of a turn's steps by name. This base class keeps them in memory only: it is for tests of agents.

    `Journal({"pay": "receipt 7"})` is the journal of a turn whose earlier attempt has taken the step "pay".
    """

    #: True if long waits may park the run.
    parks = False
    #: The task that runs the agent. A wait in another task does not park the run: the agent may go on meanwhile.
    task: asyncio.Task[Any] | None = None
    #: Number of waits under way.
    waiting = 0

    def __init__(
        self, results: Mapping[str, Any] | None = None, *, answers: Mapping[str, Any] | None = None
    ) -> None:
        #: Results as JSON, of this attempt and of earlier ones.
        self.results = {name: as_json(name, result) for name, result in (results or {}).items()}
        #: The usage of models that the agent has reported in this attempt.
        self.reports: list[UsageReport] = []
        #: The answers of other agents to calls, for tests: content, or a whole `CallAnswer`, by the slug of the agent.
        self._answers = dict(answers or {})
        self._called: list[WantedCall] = []
        #: The calls for which the agent waits, by name, with the time at which each wait ends.
        self.awaited: dict[str, float] = {}
        self._call_waits = 0
        self._begun: set[str] = set()
        #: The steps that wait for a budget: before their work, and before or within it.
        self._held: set[str] = set()
        self._waits_in: set[str] = set()
        #: The steps that have reported usage although a budget had nothing left, since the agent last waited for one.
        self._overdrawn: set[str] = set()
        self._waits: set[Future[Any]] = set()
        self._stopped = False

    async def load(self, name: str) -> Mapping[str, str]:
        """Load the results of earlier attempts, and return `results`. It is called before every step, with its name."""
        return self.results

    async def admit(self, name: str, *, parks: bool = True) -> None:
        """Wait until budgets allow the work of a step. Raises the reason why the agent may spend no more.

        The run is parked for the wait if it `parks`, if that is possible, and if no other step is under way.
        """
        await self._pass_budgets(name, is_held=parks)

    async def look_at_budgets(
        self, name: str, *, waits: bool, parks: bool = False, idle: bool = False
    ) -> bool:
        """Return whether budgets allow more work in this step. Raises the reason why the agent may spend no more.

        If they do not and the agent `waits`, operators are asked, and the run is parked if it `parks`. `idle`: nothing
        of the agent goes on meanwhile. An agent that does not wait learns whether its last report left something.
        """
        return True

    async def _pass_budgets(self, name: str, *, is_held: bool) -> None:
        """Wait until budgets allow more work: before a step that is held, else within it."""
        mine = (self._waits_in, self._held) if is_held else (self._waits_in,)
        for names in mine:
            names.add(name)
        count = 0
        try:
            while not await self.look_at_budgets(
                name,
                waits=True,
                parks=is_held and self._under_way <= self._held,
                idle=self._under_way <= self._waits_in,
            ):
                count += 1
                await _sleep_until_multiple(float(conf.POLL_SECONDS) * min(count, PATIENCE))
            self._overdrawn.clear()
        finally:
            for names in mine:
                names.discard(name)

    @property
    def _under_way(self) -> set[str]:
        return self._begun - self.results.keys()

    async def keep(self, name: str, result: str) -> None:
        """Store a result; when this returns, every later attempt will find it."""
        self.results[name] = result

    def report(self, used: UsageReport) -> None:
        """Take a report of the usage of models, from any thread. The subclass of the host begins to store it."""
        self.reports.append(used)

    async def confirm(self, step: str = "") -> None:
        """Wait until all that was reported in a step is stored. Raises the reason why the agent may spend no more.

        The first report after which a budget has nothing left stops nobody, since it may be the last one. An agent with
        steps is stopped, or parked, before the next one. With another report before that, and without steps, it waits
        here, since its calls would be repeated.
        """
        await self.admit_next(step, parks=False)

    async def admit_next(self, name: str, *, parks: bool) -> None:
        """Wait until budgets allow more work, if some has begun since they had nothing left.

        It is for agents that may have nothing more to do. Raises the reason why the agent may spend no more.
        """
        if name in self._overdrawn:
            await self._pass_budgets(name, is_held=parks)
        elif not await self.look_at_budgets(name, waits=False):
            self._overdrawn.add(name)

    async def clock(self) -> float:
        """Return the seconds since the epoch, by a clock that all attempts share."""
        return time.time()

    async def pause(self, seconds: float) -> None:
        """Wait in memory."""
        await asyncio.sleep(seconds)

    async def park(
        self, name: str, until: float, awaits: int | None = None, calls: Sequence[str] = ()
    ) -> None:
        """Park the run in a step until a time, or until the task with this key or all these calls have ended; stop the agent.

        Returns if the run cannot be parked now.
        """

    async def look(self, agent: str, task_id: str) -> tuple[int, str] | None:
        """Return the key and state of a task that the caller may see; None = there is none. In tests all have completed."""
        return 0, TaskState.COMPLETED.value

    async def begin_call(self, call: WantedCall) -> str | float:
        """Let the host accept a call; return the result of its step, or the seconds to wait until the next try.

        Raises CallRefused. In tests the answers are those that the journal was given.
        """
        if call.agent not in self._answers:
            raise CallRefused(f"There is no agent {call.agent}.")
        self._called.append(call)
        ids = {"task": f"task of {call.name}", "context": f"context of {call.name}"}
        begun = {**ids, "key": len(self._called) - 1, "until": await self.clock() + call.seconds}
        self.results[call.name] = write(begun).decode()
        return self.results[call.name]

    async def look_at_calls(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the states of tasks by their keys."""
        return dict.fromkeys(keys, TaskState.COMPLETED.value)

    async def read_answer(self, key: int, *, cancels: bool) -> dict[str, Any]:
        """Return the answer of the task with this key as `CallAnswer` has it; if it `cancels`, the task is cancelled first."""
        call = self._called[key]
        given = self._answers[call.agent]
        said = [{"text": given}] if isinstance(given, str) else given
        artifacts = [{"artifactId": "answer", "parts": said}]
        ids = {"task_id": f"task of {call.name}", "context_id": f"context of {call.name}"}
        return {**ids, "state": TaskState.COMPLETED.value, "artifacts": artifacts}

    async def follow(self, keys: Collection[int], asking: Collection[int], seconds: float) -> None:
        """Wait in memory until all these tasks have ended, or ask if they are among those `asking`; at most so many seconds."""
        await self.pause(seconds)

    @property
    def may_wait(self) -> bool:
        """True while the agent may wait in memory for other tasks; else it is parked at once."""
        return True

    def lend_slot(self, *, in_thread: bool) -> AbstractContextManager[None]:
        """Let another run have the slot, and the thread in which the agent waits, as long as the block lasts."""
        return contextlib.nullcontext()

    def is_alone(self, name: str) -> bool:
        """Return whether the agent does nothing beside the step of this name."""
        return not self.waiting and self._under_way <= {name}

    @property
    def is_idle(self) -> bool:
        """True if the agent is in one wait and in no step."""
        return self.waiting == 1 and not self._under_way

    @contextlib.contextmanager
    def await_calls(self, until: Mapping[str, float]) -> Iterator[None]:
        """Note that the agent waits for these calls, each until a time, as long as the block lasts."""
        self.waiting += 1
        self._call_waits += 1
        self.awaited |= until
        try:
            yield
        finally:
            self.waiting -= 1
            self._call_waits -= 1
            for name in until:
                self.awaited.pop(name, None)

    async def park_for_calls(self) -> None:
        """Park the run until all calls have ended for which the agent waits. Returns if it does something else, too."""
        calls = list(self.awaited)
        if self.parks and calls and self.waiting == self._call_waits and not self._under_way:
            await self.park(calls[-1], min(self.awaited.values()), calls=calls)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call a synchronous function of an asynchronous agent."""
        return await asyncio.to_thread(work)

    async def begin(self, name: str) -> str | None:
        """Reserve the name; return the result if the step was taken before. Raises ValueError."""
        if name in self._begun:
            raise ValueError(f"this turn has a step {name!r} already; number them")
        check_name(name)
        self._begun.add(name)
        try:
            await self.load(name)
        except BaseException:
            self.give_up(name)
            raise
        kept = self.results.get(name)
        if kept is not None:
            note_replay(name)
        return kept

    def give_up(self, name: str) -> None:
        """Release the name of a step that raised, so that it may be tried again."""
        self._begun.discard(name)

    def wait(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> T:
        """Wait in a thread for work on the event loop. Raises CancelledError once the turn is stopped."""
        if self._stopped:
            raise CancelledError
        future = begin_on(loop, work)
        self._waits.add(future)
        if self._stopped:
            future.cancel()
        try:
            return future.result()
        finally:
            self._waits.discard(future)

    def stop(self) -> None:
        """Wake the waiting threads, because the turn was stopped."""
        self._stopped = True
        for future in tuple(self._waits):
            future.cancel()


class DurableStep:
    """Work that is done once in a turn: awaited, or in a synchronous agent called with `now`."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        name: str,
        work: Callable[[], Any],
        used: Callable[[Any], None] = lambda _: None,
        *,
        is_done: bool = False,
    ) -> None:
        """Make a step; `used` is called with it when it is awaited or waited for.

        `is_done`: its work was done before, and it is kept whatever budgets allow.
        """
        self.name, self._journal, self._loop, self._work = name, journal, loop, work
        self._used, self._is_done = used, is_done

    def __await__(self) -> Generator[Any, None, Any]:
        self._used(self)
        return self._take().__await__()

    async def _take(self) -> Any:
        kept = await self._journal.begin(self.name)
        if kept is None:
            try:
                if not self._is_done:
                    await self._journal.admit(self.name)
                with step_span(self.name) as span, begin_step(self.name), _log_failure(self.name):
                    kept = as_json(self.name, await self._call())
                    tracing.content(span, "output.value", kept)
                await self._journal.keep(self.name, kept)
            except BaseException:
                self._journal.give_up(self.name)
                raise
        return unwrap(kept)

    async def _call(self) -> Any:
        if inspect.iscoroutinefunction(self._work):
            return await self._work()
        result = await self._journal.in_thread(self._work)
        return await result if inspect.isawaitable(result) else result

    def now(self) -> Any:
        """Take the step in the calling thread. RuntimeError on the event loop's own thread."""
        self._used(self)
        kept = self._wait(lambda: self._journal.begin(self.name))
        if kept is None:
            try:
                if not self._is_done:
                    self._wait(lambda: self._journal.admit(self.name))
                with step_span(self.name) as span, begin_step(self.name), _log_failure(self.name):
                    kept = result = as_json(self.name, self._call_here())
                    tracing.content(span, "output.value", kept)
                self._wait(lambda: self._journal.keep(self.name, result))
            except BaseException:
                self._journal.give_up(self.name)
                raise
        return unwrap(kept)

    def _call_here(self) -> Any:
        result = self._work()
        return self._wait(lambda: result) if inspect.isawaitable(result) else result

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._journal.wait(self._loop, work)


@contextlib.contextmanager
def _log_failure(name: str) -> Iterator[None]:
    """Log a step that raises in the log of its run, where the console finds it: nothing of it is stored otherwise."""
    began = time.monotonic()
    try:
        yield
    except Exception as fault:
        what = f"{type(fault).__name__}: {fault}"[:MAX_FAULT_LENGTH]
        _failures.info("step %s failed after %.3f s: %s", name, time.monotonic() - began, what)
        raise


async def _sleep_until_multiple(seconds: float) -> None:
    """Sleep until the next multiple of these seconds: all that wait on a machine ask the database together."""
    now = asyncio.get_running_loop().time()
    await asyncio.sleep(seconds - now % seconds)


def check_name(name: str) -> None:
    """Check the name of a step. Raises ValueError."""
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ValueError(f"a step's name is 1 to {MAX_NAME_LENGTH} printable characters: {name!r}")


def as_json(name: str, result: Any) -> str:
    """Return the result of a step as JSON (`keepable`). Raises TypeError for values of types that JSON does not have."""
    return write(keepable(f"the result of step {name!r}", result)).decode()
