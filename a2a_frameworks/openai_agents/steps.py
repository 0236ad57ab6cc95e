"""Durability of a run of the OpenAI Agents SDK: each answer of a model and each call of a tool is a step of the turn.

A replayed call returns its stored result, and says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
from agents import Model, ModelResponse
from agents.exceptions import ModelBehaviorError
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionToolCall
from pydantic import TypeAdapter

from a2a_frameworks.openai_agents.answer import read_text, stream_answer
from a2a_frameworks.openai_agents.question import read_arguments
from a2a_frameworks.shared.call_ids import give_unique_ids, name_step
from a2a_frameworks.shared.model_call import limit_silence
from a2a_frameworks.shared.output import CallNumbers, OutputQueue, make_call, make_result
from a2a_tasks.agents import Turn
from a2a_tasks.protocol.jsontext import write

__all__ = ["PLACE", "STEPS", "Steps"]

#: The steps of the run that is at work here; None in a tool, which is a step as a whole.
STEPS: ContextVar[Steps | None] = ContextVar("steps", default=None)
#: Where a run is within the turn's: empty for the turn's own, else the agents and calls that began it.
PLACE: ContextVar[str | None] = ContextVar("place", default=None)
_responses = TypeAdapter(ModelResponse)
CALLS = (ResponseFunctionToolCall, ResponseCustomToolCall)
STRUCTURED = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)


class Steps:
    """The steps of one run, and of the runs within it."""

    def __init__(self, turn: Turn, output: OutputQueue, agent: Any) -> None:
        """Make the steps of a run; `agent` is that of the host."""
        self._turn, self._output, self._agent = turn, output, agent
        self._answers: Counter[str] = Counter()
        self._calls = CallNumbers()
        #: Ids of calls whose error the model gets as their result.
        self._failed: set[str] = set()

    @contextmanager
    def enter_run(self, name: str) -> Iterator[None]:
        """Take the steps of a run in this block: the turn's own, or that of an agent within it."""
        place = PLACE.get()
        token = PLACE.set("" if place is None else f"{place}{name}/")
        try:
            yield
        finally:
            PLACE.reset(token)

    async def ask_model(self, model: Model, request: dict[str, Any]) -> ModelResponse:
        """Ask a model in a step; its words are in the log before its answer is stored. Raises ModelSilent."""
        place, schema = PLACE.get() or "", request["output_schema"]
        shows = not place and (schema is None or schema.is_plain_text())
        taken = False

        async def take() -> Any:
            nonlocal taken
            taken = True
            response = await self._request(model, request, shows=shows)
            # members that the model left out are not sent to it later
            return _responses.dump_python(response, mode="json", exclude_unset=True, warnings=False)

        stored = await self._turn.step(name_step(f"{place}model#{self._answers[place] + 1}"), take)
        self._answers[place] += 1  # a request that failed may be made again under its name
        answer: ModelResponse = _responses.validate_python(stored)
        if shows and not taken:
            self._output.skip_answer(read_text(answer))
        return answer

    async def _request(
        self, model: Model, request: dict[str, Any], *, shows: bool
    ) -> ModelResponse:
        if shows:
            self._output.begin_response()
        async with limit_silence(self._agent.model_seconds) as note:
            if self._agent.streaming:
                words = self._output.write if shows else None
                response = await stream_answer(model, request, words, note)
            else:
                response = await model.get_response(**request)
        name, details = getattr(model, "model", None), response.usage.input_tokens_details
        await self._turn.usage(
            model=name if isinstance(name, str) else type(model).__name__,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cached_tokens=details.cached_tokens or 0,
            cache_write_tokens=getattr(details, "cache_write_tokens", 0) or 0,
        )
        give_unique_ids([one for one in response.output if isinstance(one, CALLS)], "call_id")
        if not response.output:  # as the SDK reads a stream that is none
            raise ModelBehaviorError("the answer is empty")
        if shows:
            await self._output.end_answer(read_text(response))
        return response

    async def call_tool(
        self,
        invoke: Callable[[ToolContext[Any], str], Awaitable[Any]],
        context: ToolContext[Any],
        arguments: str,
        *,
        is_agent: bool,
    ) -> Any:
        """Call a tool in a step. An agent that is a tool takes steps of its own.

        A replay reports the call again; the host records each event once.
        """
        id_, place = context.tool_call_id, PLACE.get() or ""
        number = self._calls.begin(id_)
        again = f"#{number}" if number > 1 else ""
        self._failed.discard(id_)
        self._output.put(make_call(id_, context.tool_name, read_arguments(arguments), number))
        if is_agent:
            token = PLACE.set(f"{place}{id_}{again}/")
            try:
                result, failed = await invoke(context, arguments), id_ in self._failed
            finally:
                PLACE.reset(token)
            if result is None:  # it waits for an approval
                return None
        else:

            async def take() -> Any:
                within = STEPS.set(None)
                try:
                    result = _make_storable(await invoke(context, arguments))
                finally:
                    STEPS.reset(within)
                return [result, id_ in self._failed]

            # calls run side by side, so their ids name them; a model may repeat an id
            name = name_step(f"{place}tool:{context.tool_name}:{id_}{again}")
            result, failed = await self._turn.step(name, take)
        shown = _make_storable(result)
        self._output.put(make_result(id_, shown, error=failed, number=number))
        return result

    def note_failure(self, context: ToolContext[Any]) -> None:
        """Note that the model is told of the error of a call."""
        self._failed.add(context.tool_call_id)


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
