"""Calls of other agents of the host: durable waits for the tasks that they begin.

A call is a task of the other agent. Its beginning is a step of the calling turn, and so is its answer. In between the run
waits: for a short time in memory, where it gives its slot away, and then parked (store/parking.py).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from a2a_tasks.agents.author_errors import note_change
from a2a_tasks.agents.emission import Content, Reply, mend_emission, parts
from a2a_tasks.agents.steps import MAX_NAME_LENGTH, DurableStep, Journal, check_name
from a2a_tasks.agents.wanted_call import ANSWER, WantedCall
from a2a_tasks.conf import conf
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import UNSET, Artifact, Message, Part, TaskState
from a2a_tasks.telemetry.step_span import step_span

__all__ = ["Call", "CallAnswer", "Gather", "want"]

#: Longest name of a call: that of its answer is longer.
MAX_LENGTH = MAX_NAME_LENGTH - len(ANSWER)
#: The values of `questions` and `at_end`.
QUESTIONS, ENDS = ("relay", "return"), ("cancel", "leave")
#: Most seconds from one try to begin a call to the next, while its agent takes no tasks.
MAX_DELAY = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """The answer of another agent, and the state of its task: COMPLETED, or why there is no answer."""

    agent: str
    state: TaskState
    task_id: str
    context_id: str
    #: The message in the status of the task.
    message: Message | None = None
    artifacts: tuple[Artifact, ...] = ()
    #: The sums of the usage that the task reported, by model.
    usage: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if the task has ended without success."""
        return self.state in TERMINAL and self.state is not TaskState.COMPLETED

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the artifacts; without artifacts, those of the message in the status."""
        said = tuple(part for artifact in self.artifacts for part in artifact.parts)
        return said or (self.message.parts if self.message else ())

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return "\n".join([part.text for part in self.parts if isinstance(part.text, str)])

    @property
    def data(self) -> Any:
        """The data of the only data part; None if there is none, or several."""
        found = [part.data for part in self.parts if part.data is not UNSET]
        return found[0] if len(found) == 1 else None


def read_call_answer(agent: str, kept: Mapping[str, Any]) -> CallAnswer:
    """Return the answer that the step of a call has kept."""
    return msgspec.convert({**kept, "agent": agent}, CallAnswer)


class _CallIds(msgspec.Struct, frozen=True):
    """The result of the step that begins a call: the ids of the task, its key, and the time at which the wait ends."""

    task: str
    context: str
    key: int
    until: float


class Call:
    """A call of another agent: awaited, or in a synchronous agent called with `now`. It returns a CallAnswer."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        wanted: WantedCall,
        used: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Make a call; `used` is called with it when it is awaited or waited for. Raises ValueError."""
        self.wanted, self.used = wanted, used
        self._journal, self._loop = journal, loop

    def __await__(self) -> Generator[Any, None, CallAnswer]:
        self.used(self)
        return self._answer(in_thread=False).__await__()

    def now(self) -> CallAnswer:
        """Wait in a thread; CancelledError wakes it. RuntimeError on the event loop's own thread."""
        self.used(self)
        return self._journal.wait(self._loop, lambda: self._answer(in_thread=True))

    async def _answer(self, *, in_thread: bool) -> CallAnswer:
        (answer,) = await _CallWait(self._journal, self._loop, [self.wanted]).take(in_thread)
        return answer


class Gather:
    """Several calls, which are begun together and waited for at once. It returns their answers in the same order."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        calls: Sequence[Call],
        used: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._journal, self._loop, self._calls, self._used = journal, loop, calls, used

    def __await__(self) -> Generator[Any, None, list[CallAnswer]]:
        return self._make_wait().take(in_thread=False).__await__()

    def now(self) -> list[CallAnswer]:
        """Wait in a thread; CancelledError wakes it. RuntimeError on the event loop's own thread."""
        wait = self._make_wait()
        return self._journal.wait(self._loop, lambda: wait.take(in_thread=True))

    def _make_wait(self) -> _CallWait:
        self._used(self)
        for call in self._calls:
            call.used(call)
        return _CallWait(self._journal, self._loop, [call.wanted for call in self._calls])


class _CallWait:
    """The beginning of some calls, and the wait until all have an answer."""

    def __init__(
        self, journal: Journal, loop: asyncio.AbstractEventLoop, calls: Sequence[WantedCall]
    ) -> None:
        self._journal, self._loop, self._calls = journal, loop, calls

    async def take(self, in_thread: bool) -> list[CallAnswer]:
        """Begin the calls in their order, wait for them, and return their answers. Raises CallRefused, ValueError."""
        begun = {call.name: await self._begin(call, in_thread) for call in self._calls}
        kept = self._journal.results
        waits = {n: b.until for n, b in begun.items() if n + ANSWER not in kept}
        late = set[str]()
        if waits:
            calls = [call for call in self._calls if call.name in waits]
            with self._journal.await_calls(waits), self._journal.lend_slot(in_thread=in_thread):
                late = await self._wait(calls, begun)
        return [await self._keep(call, begun[call.name], call.name in late) for call in self._calls]

    async def _begin(self, call: WantedCall, in_thread: bool) -> _CallIds:
        kept = await self._journal.begin(call.name)
        if kept is None:
            try:
                await self._journal.admit(call.name)
                kept = await self._accept(call, in_thread)
            except BaseException:
                self._journal.give_up(call.name)
                raise
        return msgspec.json.decode(kept, type=_CallIds)

    async def _accept(self, call: WantedCall, in_thread: bool) -> str:
        """Let the host accept the call. While its agent takes no tasks, the run waits, as at an outage."""
        while True:
            with step_span(call.name):  # the span of the called task is below it
                begun = await self._journal.begin_call(call)
            if isinstance(begun, str):
                return begun
            seconds = min(begun, MAX_DELAY)
            if self._journal.is_alone(call.name):
                await self._journal.park(call.name, await self._journal.clock() + seconds)
            with self._journal.lend_slot(in_thread=in_thread):
                await self._journal.pause(seconds)

    async def _wait(self, calls: Sequence[WantedCall], begun: Mapping[str, _CallIds]) -> set[str]:
        """Wait until all calls are answered, or late; return the late ones."""
        journal = self._journal
        until = {begun[call.name].key: begun[call.name].until for call in calls}
        returns = {begun[call.name].key for call in calls if call.questions == "return"}
        now = await journal.clock()
        patient_until = now + float(conf.PARK_SECONDS)
        while True:
            states = await journal.look_at_calls(list(until))
            going = {
                key
                for key in until
                if (state := TaskState(states[key])) not in TERMINAL
                and not (key in returns and state in INTERRUPTED)
            }
            ends = [until[key] for key in going if until[key] > now]
            if not ends:
                break
            if now >= patient_until or not journal.may_wait:
                await journal.park_for_calls()
            patience = patient_until - now if now < patient_until else float(conf.PARK_SECONDS)
            await journal.follow(sorted(going), returns, min(patience, min(ends) - now))
            now = await journal.clock()
        return {call.name for call in calls if begun[call.name].key in going}

    async def _keep(self, call: WantedCall, begun: _CallIds, late: bool) -> CallAnswer:
        """Return the answer of a call, which is kept as a step. A late child is cancelled, unless it may be left."""

        async def read() -> dict[str, Any]:
            cancels = late and call.at_end == "cancel"
            return await self._journal.read_answer(begun.key, cancels=cancels)

        step = DurableStep(self._journal, self._loop, call.name + ANSWER, read, is_done=True)
        return read_call_answer(call.agent, await step)


def want(
    agent: str, content: Sequence[Content], *, to: CallAnswer | None, name: str, **about: Any
) -> WantedCall:
    """Return the call that an agent wants; `to` is the answer that it continues, `about` are members of the call.

    Raises ValueError, TypeError.
    """
    if about["questions"] not in QUESTIONS or about["at_end"] not in ENDS:
        raise ValueError('questions is "relay" or "return", at_end is "cancel" or "leave"')
    if not math.isfinite(about["seconds"]):
        raise ValueError("the seconds of a call are a finite number")
    name = name or f"call {agent}"[:MAX_LENGTH]
    if len(name) > MAX_LENGTH:
        raise ValueError(f"the name of a call has at most {MAX_LENGTH} characters: {name!r}")
    check_name(name)
    said = Reply(parts(tuple(content)), about.pop("metadata"))
    asked = mend_emission(said)
    if asked is not said:
        note_change(f"the content of a call of {agent}")
    return WantedCall(
        agent=agent,
        name=name,
        parts=asked.parts,
        metadata=asked.metadata,
        task_id="" if to is None or to.state in TERMINAL else to.task_id,
        context_id="" if to is None else to.context_id,
        **about,
    )
