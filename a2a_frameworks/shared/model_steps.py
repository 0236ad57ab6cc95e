"""Calls of models and tools as durable steps of a turn, for frameworks that have no durability of their own.

A replayed call returns its stored result, and says nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from a2a_frameworks.shared.agent_tools import CALLS, ToolCalls
from a2a_frameworks.shared.call_ids import name_step
from a2a_frameworks.shared.model_call import limit_silence
from a2a_frameworks.shared.output import CallNumbers, OutputQueue, make_call, make_result
from a2a_tasks.agents import Part, Turn

__all__ = ["ModelAnswer", "ModelSteps", "ToolFailed"]


class _Request(NamedTuple):
    """A request to a model that is under way."""

    note: Callable[[], None]
    shows: bool


#: The request that is under way here. Agents within an agent may ask side by side.
REQUEST: ContextVar[_Request | None] = ContextVar("request", default=None)


class ToolFailed(Exception):
    """A tool failed in an earlier attempt."""


@dataclass
class ModelAnswer:
    """An answer of a model."""

    #: The answer as JSON, which the framework gets in every attempt.
    stored: Any
    text: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    files: Sequence[Part] = ()


class ModelSteps:
    """The steps of one run."""

    def __init__(
        self,
        turn: Turn,
        output: OutputQueue,
        model_seconds: float,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the steps of a run; `known` are results of an earlier turn, if the run is taken again from its start."""
        self._turn, self.output, self._model_seconds = turn, output, model_seconds
        self._known = known or {}
        #: The results so far, by the names of the steps.
        self.taken: dict[str, Any] = {}
        self._answers: Counter[str] = Counter()
        self._call_numbers = CallNumbers()
        #: The number of calls by place and id.
        self._calls_by_id: Counter[str] = Counter()
        self._agent_calls = ToolCalls(turn, output)
        #: Agents that work side by side speak one after the other.
        self._turn_to_speak = asyncio.Lock()

    def hear(self, text: str = "") -> None:
        """Take a sign of life of the model, with a piece of its answer if there is one."""
        request = REQUEST.get()
        if request is not None:
            request.note()
        if text and (request is None or request.shows):
            self.output.write(text)

    async def ask_model(
        self,
        request: Callable[[], Awaitable[ModelAnswer]],
        *,
        place: str = "",
        shows: bool = True,
    ) -> Any:
        """Ask a model in a step; its words are in the log before its answer is stored. Raises ModelSilent.

        `place` names the agent that asks, if a run has several. `shows`: the answer is for the client.
        """
        taken = False

        async def take() -> Any:
            nonlocal taken
            taken = True
            answer = await self.request(request, shows=shows)
            return {"text": answer.text, "answer": answer.stored}

        async with self._turn_to_speak if shows else nullcontext():
            name = name_step(f"{place}model#{self._answers[place] + 1}")
            stored = await self._take(name, take)
            self._answers[place] += 1  # a request that failed may be made again under its name
            # the artifacts of earlier turns are counted
            if shows and not taken and name not in self._known:
                self.output.skip_answer(stored["text"])
        return stored["answer"]

    def find_place(self) -> str:
        """Return what comes before the names of calls here, if agents within an agent call tools; by default nothing."""
        return ""

    async def _take(
        self, name: str, take: Callable[[], Awaitable[Any]], *, is_durable: bool = False
    ) -> Any:
        if name in self._known:
            result = self._known[name]
        else:
            result = await (take() if is_durable else self._turn.step(name, take))
        self.taken[name] = result
        return result

    async def request(
        self, request: Callable[[], Awaitable[ModelAnswer]], *, shows: bool = True
    ) -> ModelAnswer:
        """Ask a model, and report its usage. The host has the words when this returns. Raises ModelSilent."""
        if shows:
            self.output.begin_response()
        async with limit_silence(self._model_seconds) as note:
            token = REQUEST.set(_Request(note, shows))
            try:
                answer = await request()
            finally:
                REQUEST.reset(token)
        await self._turn.usage(
            model=answer.model,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cached_tokens=answer.cached_tokens,
            cache_write_tokens=answer.cache_write_tokens,
        )
        if shows:
            await self.output.end_answer(answer.text, answer.files)
        return answer

    async def call_tool(
        self,
        id_: str,
        name: str,
        arguments: Mapping[str, Any],
        call: Callable[[], Awaitable[Any]],
        *,
        show: Callable[[Any], Any] = lambda result: result,
        fails: Callable[[Any], bool] = lambda _: False,
        signals: tuple[type[Exception], ...] = (),
        is_durable: bool = False,
    ) -> Any:
        """Call a tool in a step, and report it; `call` returns JSON, `show` what the model gets of it, and
        `fails` whether it is an error. Raises the tool's exception, or ToolFailed in later attempts. `signals` are no errors: they are not stored.
        A call of an agent `is_durable` by itself, and no step.
        """
        number, place = self._call_numbers.begin(id_), self.find_place()
        self.output.put(make_call(id_, name, arguments, number))
        fault: Exception | None = None

        async def take() -> Any:
            nonlocal fault
            try:
                return {"result": await call()}
            except signals:
                raise
            except Exception as raised:  # noqa: BLE001 - the framework decides what it means
                fault = raised
                return {"error": str(raised) or type(raised).__name__}

        # calls run side by side, so their ids name them; a model may repeat an id, as may that of another agent
        self._calls_by_id[f"{place}{id_}"] += 1
        times = self._calls_by_id[f"{place}{id_}"]
        again = f"#{times}" if times > 1 else ""
        CALLS.set(replace(self._agent_calls, id=id_, key=f"{place}{id_}{again}"))
        step = name_step(f"{place}tool:{name}:{id_}{again}")
        stored = await self._take(step, take, is_durable=is_durable)
        if "error" in stored:
            self.output.put(make_result(id_, stored["error"], error=True, number=number))
            raise fault or ToolFailed(stored["error"])
        result = stored["result"]
        self.output.put(make_result(id_, show(result), error=fails(result), number=number))
        return result
