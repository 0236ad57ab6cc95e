"""Answers of models of the OpenAI Agents SDK: from their streams, as events, and their texts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from agents import Model, ModelResponse, Usage
from agents.exceptions import ModelBehaviorError
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

__all__ = ["NAMES", "make_event", "read_text", "stream_answer"]

#: The members of a request: named by the SDK in whole requests, in this order in streamed ones.
NAMES = [
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
]


async def stream_answer(
    model: Model,
    request: dict[str, Any],
    hear: Callable[[str], None],
) -> ModelResponse:
    """Return an answer as a whole; `hear` gets its words as they come, and is called at each sign of life."""
    settings = request["model_settings"]
    if settings.include_usage is None:
        request = {**request, "model_settings": replace(settings, include_usage=True)}
    rest = {name: value for name, value in request.items() if name not in NAMES}
    events = model.stream_response(*(request[name] for name in NAMES), **rest)
    items, place, final = [], None, None
    async with aclosing(cast("AsyncGenerator[Any, None]", events)):
        async for event in events:
            hear("")
            match event:
                case ResponseTextDeltaEvent(output_index=output, content_index=content):
                    apart = place is not None and place != (output, content)
                    place = (output, content)
                    hear(f"\n\n{event.delta}" if apart else event.delta)
                case ResponseOutputItemDoneEvent(item=item):
                    items.append(item)
                case ResponseCompletedEvent(response=response):
                    final = response
                case ResponseFailedEvent() | ResponseIncompleteEvent() | ResponseErrorEvent():
                    raise ModelBehaviorError(f"the answer ended with {event!r}")
    if final is None:
        raise ModelBehaviorError("the answer has no end")
    return ModelResponse(
        output=final.output or items,  # some servers give the items only one by one
        usage=_read_usage(final.usage),
        response_id=final.id,
    )


def _read_usage(usage: ResponseUsage | None) -> Usage:
    if usage is None:
        return Usage(requests=1)
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens,
        input_tokens_details=usage.input_tokens_details,
        output_tokens=usage.output_tokens,
        output_tokens_details=usage.output_tokens_details,
        total_tokens=usage.total_tokens,
    )


def make_event(answer: ModelResponse) -> ResponseCompletedEvent:
    """Return the last event of the stream of an answer."""
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
    return ResponseCompletedEvent.model_construct(
        type="response.completed", sequence_number=0, response=response
    )


def read_text(response: ModelResponse) -> str:
    """Return the text of an answer; its parts are paragraphs."""
    messages = [item for item in response.output if isinstance(item, ResponseOutputMessage)]
    contents = [content for message in messages for content in message.content]
    return "\n\n".join(c.text for c in contents if c.type == "output_text" and c.text)
