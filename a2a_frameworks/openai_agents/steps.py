"""Durability of a run of the OpenAI Agents SDK: each answer of a model and each call of a tool is a step of the turn.

A replayed call returns its stored result, and says nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import msgspec
from agents import Model, ModelResponse
from agents.exceptions import ModelBehaviorError
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionToolCall
from pydantic import TypeAdapter

from a2a_frameworks.openai_agents.answer import read_text, stream_answer
from a2a_frameworks.shared.agent_tools import CALLS as AGENT_CALLS
from a2a_frameworks.shared.call_ids import give_unique_ids
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps
from a2a_frameworks.shared.output import OutputQueue
from a2a_tasks.agents import Turn
from a2a_tasks.protocol.jsontext import write

__all__ = ["PLACE", "STEPS", "Steps", "read_arguments"]

#: The steps of the run that is at work here; None in a tool, which is a step as a whole.
STEPS: ContextVar[Steps | None] = ContextVar("steps", default=None)
#: Where a run is within the turn's: empty for the turn's own, else the agents and calls that began it.
PLACE: ContextVar[str | None] = ContextVar("place", default=None)
#: The errors of the call at work here that the model gets as its result; ids do not tell calls side by side apart.
FAULTS: ContextVar[list[str] | None] = ContextVar("faults", default=None)
_responses = TypeAdapter(ModelResponse)
CALLS = (ResponseFunctionToolCall, ResponseCustomToolCall)
STRUCTURED = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)


class _Waits(Exception):
    """An agent that is a tool waits for an approval."""


class Steps(ModelSteps):
    """The steps of one run, and of the runs within it."""

    def __init__(self, turn: Turn, output: OutputQueue, agent: Any) -> None:
        """Make the steps of a run; `agent` is that of the host."""
        super().__init__(turn, output, agent.model_seconds)
        self._agent = agent
        #: The runs within others that have begun, by place and name.
        self._runs: Counter[str] = Counter()

    def find_place(self) -> str:
        """Return where the run is within the turn's."""
        return PLACE.get() or ""

    @contextmanager
    def enter_run(self, name: str) -> Iterator[None]:
        """Take the steps of a run in this block: the turn's own, or that of an agent within it.

        Runs of one name within a run are numbered in the order in which they begin: that in which they end may differ in a
        later attempt. A streamed run goes on after the block.
        """
        within, place = PLACE.get(), ""
        if within is not None:
            self._runs[f"{within}{name}"] += 1
            number = self._runs[f"{within}{name}"]
            place = f"{within}{name}{f'#{number}' if number > 1 else ''}/"
        with _set(PLACE, place):
            yield

    async def ask(self, model: Model, request: dict[str, Any]) -> ModelResponse:
        """Ask a model in a step. Raises ModelSilent."""
        place, schema = self.find_place(), request["output_schema"]
        shows = not place and (schema is None or schema.is_plain_text())
        stored = await self.ask_model(
            partial(self._answer, model, request), place=place, shows=shows
        )
        answer: ModelResponse = _responses.validate_python(stored)
        if not answer.output:  # as the SDK reads a stream that is none
            raise ModelBehaviorError("the answer is empty")
        return answer

    async def _answer(self, model: Model, request: dict[str, Any]) -> ModelAnswer:
        if self._agent.streaming:
            response = await stream_answer(model, request, self.hear)
        else:
            response = await model.get_response(**request)
        give_unique_ids([one for one in response.output if isinstance(one, CALLS)], "call_id")
        name, usage = getattr(model, "model", None), response.usage
        return ModelAnswer(
            # members that the model left out are not sent to it later
            _responses.dump_python(response, mode="json", exclude_unset=True, warnings=False),
            read_text(response),
            name if isinstance(name, str) else type(model).__name__,
            usage.input_tokens,
            usage.output_tokens,
            usage.input_tokens_details.cached_tokens or 0,
            getattr(usage.input_tokens_details, "cache_write_tokens", 0) or 0,
        )

    async def invoke(
        self,
        invoke: Callable[[ToolContext[Any], str], Awaitable[Any]],
        context: ToolContext[Any],
        arguments: str,
        *,
        is_agent: bool,
    ) -> Any:
        """Call a tool in a step. An agent that is a tool takes steps of its own; None = it waits for an approval.

        A replay reports the call again; the host records each event once.
        """
        id_ = context.tool_call_id

        async def call() -> list[Any]:
            # a tool is a step as a whole; an agent within has a place
            calls = AGENT_CALLS.get()
            place = f"{calls.key if calls else id_}/"
            faults: list[str] = []
            with _set(FAULTS, faults), _set(PLACE, place) if is_agent else _set(STEPS, None):
                result = await invoke(context, arguments)
            if is_agent and result is None:
                raise _Waits
            return [result if is_agent else _make_storable(result), bool(faults)]

        try:
            result, _ = await self.call_tool(
                id_,
                context.tool_name,
                read_arguments(arguments),
                call,
                show=lambda found: _make_storable(found[0]),
                fails=lambda found: found[1],
                signals=(_Waits,),
                is_durable=is_agent,
            )
        except _Waits:
            return None
        return result

    def note_failure(self, context: ToolContext[Any]) -> None:
        """Note that the model is told of the error of a call."""
        faults = FAULTS.get()
        if faults is not None:
            faults.append(context.tool_call_id)


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _make_storable(result: Any) -> Any:
    """Return the result of a tool as JSON that the SDK makes the same message of: else its text, as the SDK does."""
    if isinstance(result, STRUCTURED):
        return result.model_dump(mode="json", exclude_none=True)
    if isinstance(result, list) and result and all(isinstance(one, STRUCTURED) for one in result):
        return [_make_storable(one) for one in result]
    try:
        stored: Any = msgspec.json.decode(write(result))
    except (TypeError, ValueError):
        return str(result)
    return stored if stored == result and str(stored) == str(result) else str(result)


def read_arguments(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call; those that are no object are its `input`."""
    try:
        found = json.loads(arguments)
    except ValueError:
        found = arguments
    return found if isinstance(found, dict) else {"input": found}
