"""One run of a pydantic-ai agent for a turn: its answers, and its errors in words for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import AgentRunResult, BinaryContent, DeferredToolRequests, ModelResponse
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.durable_exec import replay_scope
from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)

from a2a_frameworks.pydantic_ai.messages import TypedMessageStore, make_prompt
from a2a_frameworks.pydantic_ai.output import ModelOutput
from a2a_frameworks.pydantic_ai.question import make_question, read_results
from a2a_frameworks.pydantic_ai.steps import StepBackend, TurnDurability
from a2a_frameworks.shared.base import resolve
from a2a_frameworks.shared.model_call import (
    ErrorRow,
    ErrorText,
    ModelCall,
    ModelSilent,
    count_artifacts,
)
from a2a_frameworks.shared.questions import FormQuestion
from a2a_tasks.agents import Turn, data, file, text
from a2a_tasks.agents.emission import Chunk, Emission

__all__ = ["PydanticAICall"]

#: Errors of the framework and the words for clients, the most particular first.
WORDS: tuple[ErrorRow, ...] = (
    ((ModelRateLimitError, ModelUnavailableError), ErrorText.BUSY),
    ((ModelQuotaExceededError, ModelAuthenticationError, ModelNotFoundError), ErrorText.UNUSABLE),
    (ModelContextWindowExceededError, ErrorText.TOO_LONG),
    (ModelRequestRejectedError, ErrorText.REFUSED_REQUEST),
    ((ModelAPIError, ModelSilent), ErrorText.SILENT),
    (ContentFilterError, ErrorText.REFUSED),
    (UnexpectedModelBehavior, ErrorText.UNFIT),
    (UsageLimitExceeded, ErrorText.TOO_MUCH),
)


class PydanticAICall(ModelCall):
    """An agent of pydantic-ai at work for a turn."""

    _source: AbstractAgent[Any, Any]

    def __init__(self, source: Any, turn: Turn, agent: Any) -> None:
        super().__init__(source, turn, agent)
        self._store = TypedMessageStore(turn)
        self._output: ModelOutput
        self._work: asyncio.Task[AgentRunResult[Any]]

    def find_question(self) -> FormQuestion | None:
        """Return the question about deferred tools that the task asked before."""
        return make_question(self._store.requests) if self._store.requests else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        given: dict[str, Any] = {"user_prompt": None}
        if answer is None or self._store.requests is None:
            given["user_prompt"] = await make_prompt(self._turn)
        else:
            given["deferred_tool_results"] = read_results(self._turn, self._store.requests, answer)
        self._output = ModelOutput(await count_artifacts(self._turn))
        backend = StepBackend(self._turn, self._output, self._agent.model_seconds)
        given |= {
            "message_history": await self._store.read(),
            "conversation_id": self._turn.context_id,
            "deps": await resolve(self._agent.make_deps(self._turn)),
            "capabilities": [TurnDurability(backend, streams=self._agent.streaming)],
        }
        return self._run(given)

    async def _run(self, given: dict[str, Any]) -> AgentRunResult[Any]:
        with replay_scope():
            return await self._source.run(**given)

    def find_error_text(self, fault: BaseException) -> str:
        """Return the words for an error; of a group of models, those for the last one's."""
        while isinstance(fault, FallbackExceptionGroup):
            fault = fault.exceptions[-1]
        return next((words for kinds, words in WORDS if isinstance(fault, kinds)), "")

    async def conclude(self) -> list[Emission]:
        """Keep the messages of a run that is over; return its question, or its result unless it was said already."""
        result = self._work.result()
        if isinstance(result.output, DeferredToolRequests):
            self._store.wait(result.new_messages(), result.output)
            return [make_question(result.output).ask(self._turn)]
        await self._store.append(result.new_messages())
        responses = [m for m in result.all_messages() if isinstance(m, ModelResponse)]
        last = responses[-1] if responses else None
        output = result.output
        if output is None or (last is not None and (output == last.text or output in last.files)):
            return []
        if isinstance(output, BinaryContent):
            part, metadata = file(output.data, output.identifier, output.media_type), None
        elif isinstance(output, str):
            part, metadata = text(output), None
        else:
            kind = TypeAdapter(type(output))
            part = data(kind.dump_python(output, mode="json"))
            metadata = {"schema": kind.json_schema(mode="serialization")}
        name = self._output.name_artifact("result")
        return [Chunk(artifact_id=name, parts=(part,), last=True, metadata=metadata)]
