"""A run of a framework for a turn: its task, its emissions, its end, and its errors in words for people."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

from a2a_frameworks.shared.agent_tools import CALLS, ToolCalls
from a2a_frameworks.shared.output import EmissionQueue
from a2a_frameworks.shared.questions import FormQuestion
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.emission import Emission
from a2a_tasks.protocol.values import UNSET

__all__ = ["ErrorRow", "ModelCall", "ModelSilent", "ErrorText", "count_artifacts", "limit_silence"]

#: Errors, and the words for clients.
ErrorRow = tuple[type[Exception] | tuple[type[Exception], ...], str]


class ErrorText(StrEnum):
    """The words for clients about errors of models."""

    BUSY = "The model is busy. Please try again later."
    UNUSABLE = "The model cannot be used at present."
    TOO_LONG = "This conversation has become too long for the model. Please begin a new one."
    REFUSED_REQUEST = "The model refused the request."
    SILENT = "The model did not answer. Please try again later."
    REFUSED = "The model refused to answer this."
    UNFIT = "The model gave an answer that cannot be used."
    TOO_MUCH = "This message needs more of the model than one message may use."


class ModelSilent(Exception):
    """The model said nothing for too long."""


class ModelCall(ABC):
    """An agent at work for a turn, in a task of its own. Its words come by a queue."""

    _output: EmissionQueue
    _work: asyncio.Task[Any]
    #: True if the host has an emission that it may not have taken yet.
    _handed = False

    def __init__(self, source: Any, turn: Turn, agent: Any) -> None:
        """Make a call of the framework's object `source`; `agent` is that of the host."""
        self._source, self._turn, self._agent = source, turn, agent

    async def begin(self) -> Emission | None:
        """Start the run. If the message was sent before the question that the task asked, return the question again."""
        answer, question = None, self.find_question()
        if question is not None and (answer := await self._turn.answer) is None:
            return question.ask(self._turn)
        self.start(await self.prepare(answer))
        return None

    @abstractmethod
    def find_question(self) -> FormQuestion | None:
        """Return the question that the task asked before; None = it asked none."""

    @abstractmethod
    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run; `answer` is that to the question, if there is one."""

    @abstractmethod
    async def conclude(self) -> list[Emission]:
        """Keep the state of a run that is over; return its question, or what is left of its result."""

    @abstractmethod
    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error; empty = it has none, and is the agent's own."""

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start the run."""

        calls = ToolCalls(self._turn, self._output)

        async def run() -> Any:
            CALLS.set(calls)
            try:
                return await work
            except (KeyboardInterrupt, SystemExit) as fault:  # of a task they would end the process
                raise RuntimeError(f"the agent raised {fault!r}") from fault

        self._work = asyncio.create_task(run())
        self._work.add_done_callback(lambda _: self._output.finish())

    async def next(self) -> Emission | None:
        """Wait for the next emission; None at the end of the run. Raises its errors, in words where there are some."""
        if self._handed:
            self._output.confirm()
        said = await self._output.next()
        self._handed = said is not None
        if said is None:
            self.raise_fault()
        return said

    def raise_fault(self) -> None:
        """Raise the error of a run that is over, if it has one."""
        # The run cancelled itself. A CancelledError would look like a stop by the host.
        if self._work.cancelled():
            raise RuntimeError("the run of the agent was cancelled")
        fault = self._work.exception()
        if fault is None:
            return
        if words := self.find_error_text(fault):
            raise AgentError(words) from fault
        raise fault

    async def end(self, seconds: float) -> None:
        """Stop the run if it is not over, and wait for its end."""
        if not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work], timeout=seconds)
        if self._work.done() and not self._work.cancelled():
            self._work.exception()  # asyncio would log it otherwise


@asynccontextmanager
async def limit_silence(seconds: float) -> AsyncIterator[Callable[[], None]]:
    """Limit the silence of a model in a block, which gets a function to call at each sign of life. Raises ModelSilent."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds) as limit:
            yield lambda: limit.reschedule(loop.time() + seconds)
    except TimeoutError as fault:
        raise ModelSilent(f"the model was silent for {seconds} s") from fault


async def count_artifacts(turn: Turn) -> int:
    """Return the number of artifacts that the task had before the turn."""
    before = await turn.task
    return 0 if before is None or before.artifacts is UNSET else len(before.artifacts)
