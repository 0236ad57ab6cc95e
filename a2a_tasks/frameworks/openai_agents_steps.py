"""Durability of a run of the OpenAI Agents SDK: each answer of a model and each call of a tool is a step of the turn.

A replayed call returns its stored result, and says nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast

import msgspec
from agents import Model, ModelProvider, ModelResponse, Usage
from agents.exceptions import ModelBehaviorError
from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseErrorEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseTextDeltaEvent,
    ResponseUsage,
)
from pydantic import TypeAdapter

from a2a_tasks.agents import Turn
from a2a_tasks.agents.steps import MAX_NAME_LENGTH
from a2a_tasks.frameworks.model_call import ModelSilent
from a2a_tasks.frameworks.output import OutputQueue
from a2a_tasks.protocol.jsontext import write

__all__ = ["STEPS", "StepModel", "StepProvider", "Steps", "read_text"]

#: The steps of the run that is at work here; None in a tool, which is a step as a whole.
STEPS: ContextVar[Steps | None] = ContextVar("steps", default=None)
#: Where a run is within the turn's: empty for the turn's own, else the agents and calls that began it.
PLACE: ContextVar[str | None] = ContextVar("place", default=None)
_responses = TypeAdapter(ModelResponse)
#: What a model is asked; the SDK names it in whole requests, and gives it in this order in streamed ones.
NAMES = [
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
]
STRUCTURED = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)


class Steps:
    """The steps of one run, and of the runs within it."""

    def __init__(
        self, turn: Turn, output: OutputQueue, *, streams: bool, model_seconds: float
    ) -> None:
        self._turn, self._output = turn, output
        self._streams, self._model_seconds = streams, model_seconds
        self._answers: Counter[str] = Counter()

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
            # What the model left out stays out of what it is sent later.
            return _responses.dump_python(response, mode="json", exclude_unset=True, warnings=False)

        stored = await self._turn.step(_name(f"{place}model#{self._answers[place] + 1}"), take)
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
        try:
            async with asyncio.timeout(self._model_seconds) as silence:
                if self._streams:
                    response = await self._stream(model, request, silence, shows=shows)
                else:
                    response = await model.get_response(**request)
        except TimeoutError as fault:
            raise ModelSilent(f"the model was silent for {self._model_seconds} s") from fault
        if not response.output:  # as the SDK reads a stream that is none
            raise ModelBehaviorError("the answer is empty")
        name = getattr(model, "model", None)
        self._turn.usage(
            model=name if isinstance(name, str) else type(model).__name__,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cached_tokens=response.usage.input_tokens_details.cached_tokens or 0,
        )
        if shows:
            await self._output.end_answer(read_text(response))
        return response

    async def _stream(
        self,
        model: Model,
        request: dict[str, Any],
        silence: asyncio.Timeout,
        *,
        shows: bool,
    ) -> ModelResponse:
        """Pass on the words of an answer as they come, and return it whole."""
        settings = request["model_settings"]
        if settings.include_usage is None:
            request = {**request, "model_settings": replace(settings, include_usage=True)}
        rest = {name: value for name, value in request.items() if name not in NAMES}
        events = model.stream_response(*(request[name] for name in NAMES), **rest)
        loop, items, place, final = asyncio.get_running_loop(), [], None, None
        async with aclosing(cast("AsyncGenerator[Any, None]", events)):
            async for event in events:
                silence.reschedule(loop.time() + self._model_seconds)
                match event:
                    case ResponseTextDeltaEvent(output_index=output, content_index=content):
                        apart = place is not None and place != (output, content)
                        place = (output, content)
                        if shows:
                            self._output.write(f"\n\n{event.delta}" if apart else event.delta)
                    case ResponseOutputItemDoneEvent(item=item):
                        items.append(item)
                    case ResponseCompletedEvent(response=response):
                        final = response
                    case ResponseFailedEvent() | ResponseIncompleteEvent() | ResponseErrorEvent():
                        raise ModelBehaviorError(f"the answer ended with {event!r}")
        if final is None:
            raise ModelBehaviorError("the answer has no end")
        usage = final.usage
        return ModelResponse(
            output=final.output or items,  # some servers give the items only one by one
            usage=Usage(
                requests=1,
                input_tokens=usage.input_tokens,
                input_tokens_details=usage.input_tokens_details,
                output_tokens=usage.output_tokens,
                output_tokens_details=usage.output_tokens_details,
                total_tokens=usage.total_tokens,
            )
            if usage
            else Usage(requests=1),
            response_id=final.id,
        )

    async def call_tool(
        self,
        invoke: Callable[[ToolContext[Any], str], Awaitable[Any]],
        context: ToolContext[Any],
        arguments: str,
        *,
        is_agent: bool,
    ) -> Any:
        """Call a tool in a step. An agent that is a tool takes steps of its own."""
        place = PLACE.get() or ""
        if is_agent:
            token = PLACE.set(f"{place}{context.tool_call_id}/")
            try:
                return await invoke(context, arguments)
            finally:
                PLACE.reset(token)

        async def take() -> Any:
            within = STEPS.set(None)
            try:
                return _as_stored(await invoke(context, arguments))
            finally:
                STEPS.reset(within)

        # calls run side by side, so their ids name them
        name = _name(f"{place}tool:{context.tool_name}:{context.tool_call_id}")
        return await self._turn.step(name, take)


class StepModel(Model):
    """A model whose answers are steps."""

    def __init__(self, model: Model, steps: Steps) -> None:
        self._model, self._steps = model, steps

    def __getattr__(self, name: str) -> Any:
        """Return what the SDK asks models of some kinds about."""
        return getattr(self._model, name)

    async def get_response(self, *request: Any, **about: Any) -> ModelResponse:
        """Return the answer of the model, or the stored one."""
        named = dict(zip(NAMES, request, strict=False))
        return await self._steps.ask_model(self._model, {**named, **about})

    async def stream_response(self, *request: Any, **about: Any) -> AsyncIterator[Any]:
        """Yield the answer as one event: the words went to the client already."""
        answer = await self.get_response(*request, **about)
        usage = answer.usage
        response = Response.model_construct(
            id=answer.response_id or "",
            object="response",
            output=answer.output,
            usage=ResponseUsage(
                input_tokens=usage.input_tokens,
                input_tokens_details=usage.input_tokens_details,
                output_tokens=usage.output_tokens,
                output_tokens_details=usage.output_tokens_details,
                total_tokens=usage.total_tokens,
            ),
        )
        yield ResponseCompletedEvent.model_construct(
            type="response.completed", sequence_number=0, response=response
        )

    def get_retry_advice(self, request: Any) -> Any:
        """Return the advice of the model."""
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)  # noqa: SLF001 - what the SDK calls

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


class StepProvider(ModelProvider):
    """A provider of models whose answers are steps."""

    def __init__(self, provider: ModelProvider, steps: Steps) -> None:
        self._provider, self._steps = provider, steps

    def get_model(self, model_name: str | None) -> Model:
        """Return a model by its name."""
        return StepModel(self._provider.get_model(model_name), self._steps)

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def read_text(response: ModelResponse) -> str:
    """Return the text of an answer; its parts are paragraphs."""
    messages = [item for item in response.output if isinstance(item, ResponseOutputMessage)]
    contents = [content for message in messages for content in message.content]
    return "\n\n".join(c.text for c in contents if c.type == "output_text" and c.text)


def _name(name: str) -> str:
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        return hashlib.sha256(name.encode()).hexdigest()
    return name


def _as_stored(result: Any) -> Any:
    """Return the result of a tool as JSON that the SDK makes the same message of: else its text, as the SDK does."""
    if isinstance(result, STRUCTURED):
        return result.model_dump(mode="json", exclude_none=True)
    if isinstance(result, list) and result and all(isinstance(one, STRUCTURED) for one in result):
        return [_as_stored(one) for one in result]
    try:
        stored: Any = msgspec.json.decode(write(result))
    except (TypeError, ValueError):
        return str(result)
    return stored if stored == result and str(stored) == str(result) else str(result)
