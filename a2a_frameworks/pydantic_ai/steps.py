"""Durability of a pydantic-ai run: each call of a model or a tool is a durable step of the turn.

The seam is pydantic-ai's contract for durable engines (`pydantic_ai.durable_exec`): a capability that is given to one
run, so the agent itself does not change. A replayed call returns its stored result, and says nothing.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from typing import Any

from pydantic_ai import (
    AgentStreamEvent,
    FilePart,
    ModelResponse,
    RunContext,
    RunUsage,
    ToolCallPart,
    UserError,
)
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.durable_exec import (
    JSON_CODEC,
    BaseDurabilityCapability,
    CallableOperationBackend,
    DurabilityEngineSpec,
    DurableOperationId,
    EventStreamHandlerId,
    JournalOperationNamer,
    ModelRequestId,
    RoleBasedOperationConfig,
    ToolsetCallToolId,
    record_durable_unit,
)

from a2a_frameworks.pydantic_ai.output import ModelOutput
from a2a_frameworks.pydantic_ai.tools import calls_agent
from a2a_frameworks.shared.call_ids import give_unique_ids, name_step
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps
from a2a_tasks.agents import Turn, file
from a2a_tasks.agents.steps import MAX_NAME_LENGTH
from a2a_tasks.agents.usage import OTHERS

__all__ = ["StepBackend", "TurnDurability", "find_unfit"]

Body = Callable[[], Awaitable[object]]


class TurnDurability(BaseDurabilityCapability[Any]):
    """The durable engine of one run: the steps of a turn."""

    engine_spec = DurabilityEngineSpec(
        engine_name="A2A host",
        durable_unit_noun="step",
        durable_container_noun="turn",
        codec=JSON_CODEC,
        toolset_lifecycles={
            "function": "enter-always",
            "mcp": "enter-in-durable-unit",
            "dynamic": "enter-never",
        },
    )

    def __init__(self, backend: StepBackend, *, streams: bool) -> None:
        """Make the engine of a run. `streams`: the words of the model are wanted as they come."""
        self._backend = backend
        super().__init__(
            name="agent", event_stream_handler=backend.handle_events if streams else None
        )

    @property
    def in_durable_context(self) -> bool:
        """Return True: the engine exists only as long as its run."""
        return True

    def get_durable_operation_backend(self) -> StepBackend:
        """Return the backend, which counts the steps of the run."""
        return self._backend


class StepBackend(CallableOperationBackend[None]):
    """The operations of one run as steps of its turn."""

    def __init__(self, turn: Turn, output: ModelOutput, model_seconds: float) -> None:
        config: RoleBasedOperationConfig[None] = RoleBasedOperationConfig(
            model=None, event=None, capability=None, tool=None
        )
        super().__init__(namer=JournalOperationNamer("agent"), config=config)
        self._turn, self._output = turn, output
        self._steps = ModelSteps(turn, output, model_seconds)
        self._counts: Counter[str] = Counter()
        #: The part of the framework's usage in this attempt that the turn has already reported.
        self._counted = RunUsage()

    async def execute(
        self,
        *,
        operation_id: DurableOperationId,
        name: str,
        body: Body,
        cache_key: tuple[object, ...],
        config: None,
    ) -> object:
        """Take an operation as a step.

        Handlers of events are none: in a replay they run again, and send nothing. Calls of agents are durable themselves.
        """
        if isinstance(operation_id, EventStreamHandlerId) or calls_agent(operation_id):
            return await body()
        requests = isinstance(operation_id, ModelRequestId)
        taken = False

        async def take() -> object:
            nonlocal taken
            taken = True
            if requests:
                return (await self._steps.request(partial(_ask, body))).stored
            result = await body()
            for context in cache_key:
                if isinstance(context, RunContext):
                    await self._report_others(context.usage)
            return result

        payload: object = await self._turn.step(self._name(operation_id, name, cache_key), take)
        record_durable_unit(executed=taken)
        if requests:
            response = JSON_CODEC.load(ModelResponse, payload)
            self._counted += RunUsage(requests=1) + response.usage
            if not taken:
                self._output.skip_response(response)
        return payload

    async def _report_others(self, usage: RunUsage) -> None:
        """Report what other agents, which a tool has run with the usage of this one, have added to it."""
        new: dict[str, Any] = {
            "requests": usage.requests - self._counted.requests,
            "input_tokens": usage.input_tokens - self._counted.input_tokens,
            "output_tokens": usage.output_tokens - self._counted.output_tokens,
            "cached_tokens": usage.cache_read_tokens - self._counted.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens - self._counted.cache_write_tokens,
        }
        self._counted = copy.copy(usage)
        if any(new.values()):
            await self._turn.usage(model=OTHERS, **new)

    def _name(
        self, operation_id: DurableOperationId, name: str, cache_key: tuple[object, ...]
    ) -> str:
        """Return the name of a step, equal in every attempt: calls of tools run side by side, so their ids name them."""
        if isinstance(operation_id, ToolsetCallToolId):
            (context,) = (value for value in cache_key if isinstance(value, RunContext))
            name = f"{name}:{context.tool_call_id}"
        name = name_step(name, MAX_NAME_LENGTH - 10)
        self._counts[name] += 1
        return f"{name}#{self._counts[name]}"

    async def handle_events(
        self, context: RunContext[Any], events: AsyncIterable[AgentStreamEvent]
    ) -> None:
        """Pass on the words of the model and the calls of tools as they come."""
        async for event in events:
            self._steps.hear()
            self._output.read_event(event)


async def _ask(body: Body) -> ModelAnswer:
    """Ask the model."""
    payload = await body()
    response = JSON_CODEC.load(ModelResponse, payload)
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if give_unique_ids(calls, "tool_call_id"):
        payload = JSON_CODEC.dump(ModelResponse, response)
    files = [part.content for part in response.parts if isinstance(part, FilePart)]
    return ModelAnswer(
        payload,
        response.text or "",
        response.model_name or "unknown",
        response.usage.input_tokens,
        response.usage.output_tokens,
        response.usage.cache_read_tokens,
        response.usage.cache_write_tokens,
        [file(one.data, one.identifier, one.media_type) for one in files],
    )


def find_unfit(agent: AbstractAgent[Any, Any]) -> str:
    """Return why an agent cannot run in durable steps; empty = it can."""
    try:
        other = BaseDurabilityCapability.from_agent(agent)
        if other is not None:
            return f"is made durable by {other.engine_name}; the host does that itself"
        backend = StepBackend(None, None, 0)  # type: ignore[arg-type] # it is bound, and takes no steps
        TurnDurability(backend, streams=False).for_agent(agent)
    except UserError as fault:
        return f"cannot be hosted: {fault}"
    return ""
