"""Durability of a run of Strands: each answer of a model and each call of a tool is a step of the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from strands import Agent
from strands.interrupt import InterruptException
from strands.middleware import (
    ExecuteToolContext,
    ExecuteToolStage,
    InvokeModelContext,
    InvokeModelStage,
)
from strands.models import Model
from strands.types._events import ToolInterruptEvent
from strands.types.events import ToolResultEvent
from strands.types.session import decode_bytes_values, encode_bytes_values

from a2a_frameworks.shared.agent_tools import find_agent_tool
from a2a_frameworks.shared.call_ids import make_unique
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps

__all__ = ["STEPS", "add_steps", "read_usage"]

#: Where the state of an invocation has the steps of its turn.
STEPS = "a2a_steps"
#: Where an agent notes that it has the middleware.
MARK = "_a2a_has_steps"


def add_steps(agent: Agent) -> None:
    """Let an agent take steps in invocations whose state has some."""
    if not hasattr(agent, MARK):
        agent.add_middleware(InvokeModelStage.Input, _use_steps)
        agent.add_middleware(ExecuteToolStage, _call_tool)
        setattr(agent, MARK, True)


def _use_steps(context: InvokeModelContext) -> InvokeModelContext:
    steps = context.invocation_state.get(STEPS)
    return context.replace(model=StrandsStepModel(context.model, steps)) if steps else context


class StrandsStepModel(Model):
    """A model whose answers are steps."""

    def __init__(self, model: Model, steps: ModelSteps) -> None:
        self._model, self._steps = model, steps

    def __getattr__(self, name: str) -> Any:
        """Return what the framework asks models of some kinds about."""
        return getattr(self._model, name)

    @property
    def stateful(self) -> bool:
        """Return whether the provider keeps the conversation."""
        return self._model.stateful

    def update_config(self, **config: Any) -> None:
        """Change the configuration of the model."""
        self._model.update_config(**config)

    def get_config(self) -> Any:
        """Return the configuration of the model."""
        return self._model.get_config()

    def structured_output(self, *request: Any, **about: Any) -> Any:
        """Return structured output of the model."""
        return self._model.structured_output(*request, **about)

    async def stream(self, *request: Any, **about: Any) -> AsyncIterator[Any]:
        """Yield the events of an answer. Its words went to the client already."""

        async def ask() -> ModelAnswer:
            events: list[Any] = []
            texts: list[str] = []
            usage: dict[str, int] = {}
            stream = cast("Any", self._model.stream(*request, **about))
            async with aclosing(stream):
                async for event in stream:
                    delta = event.get("contentBlockDelta", {}).get("delta", {})
                    text = delta.get("text", "")
                    usage = event.get("metadata", {}).get("usage", usage)
                    self._steps.hear(text)
                    texts.append(text)
                    if not (text and _join(events, text)):
                        events.append(encode_bytes_values(event))
            _make_ids_unique(events)
            return ModelAnswer(
                events,
                "".join(texts),
                str(self.get_config().get("model_id", "unknown")),
                **read_usage(usage),
            )

        for event in decode_bytes_values(await self._steps.ask_model(ask)):
            yield event


def _make_ids_unique(events: list[Any]) -> None:
    starts = [event.get("contentBlockStart", {}).get("start", {}) for event in events]
    uses = [start["toolUse"] for start in starts if "toolUse" in start]
    for use, id_ in zip(uses, make_unique(use["toolUseId"] for use in uses), strict=True):
        use["toolUseId"] = id_


def read_usage(usage: dict[str, int]) -> dict[str, Any]:
    """Return the figures of a request. Anthropic and Bedrock count the tokens of a cache beside the input, as the total shows."""
    given, said = usage.get("inputTokens", 0), usage.get("outputTokens", 0)
    read, written = usage.get("cacheReadInputTokens", 0), usage.get("cacheWriteInputTokens", 0)
    beside = usage.get("totalTokens", 0) == given + said + read + written or given < read + written
    return {
        "input_tokens": given + (read + written if beside else 0),
        "output_tokens": said,
        "cached_tokens": read,
        "cache_write_tokens": written,
    }


def _join(events: list[Any], text: str) -> bool:
    """Add a piece of text to the last event, if that is one; return whether it is."""
    delta = events[-1].get("contentBlockDelta", {}).get("delta", {}) if events else {}
    if "text" in delta:
        delta["text"] += text
    return "text" in delta


async def _call_tool(context: ExecuteToolContext, call_next: Any) -> AsyncIterator[Any]:
    """Call a tool in a step. One that interrupts the run is called again when it is answered."""
    steps = context.invocation_state.get(STEPS)
    if steps is None:
        async for event in call_next(context):
            yield event
        return
    asked: ToolInterruptEvent | None = None
    fault: Exception | None = None

    async def call() -> Any:
        nonlocal asked, fault
        result: Any = None
        async for event in call_next(context):
            match event:
                case ToolInterruptEvent():
                    asked = event
                    raise InterruptException(event.interrupts[0])
                case ToolResultEvent():
                    result, fault = event.tool_result, event.exception
        return encode_bytes_values(result)

    use = context.tool_use
    try:
        stored = await steps.call_tool(
            use["toolUseId"],
            use["name"],
            use["input"],
            call,
            show=lambda result: _read(result["content"]),
            fails=lambda result: result["status"] == "error",
            signals=(InterruptException,),
            is_durable=find_agent_tool(context.tool) is not None,
        )
    except InterruptException:
        if asked is None:
            raise
        yield asked
    else:
        yield ToolResultEvent(decode_bytes_values(stored), fault)


def _read(content: Any) -> Any:
    """Return the content of a result as the model reads it."""
    blocks = [block.get("text", block.get("json")) for block in content]
    return blocks[0] if len(blocks) == 1 else blocks
