"""One run of a pydantic-ai agent for a turn: its answers, and its errors in words for people."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import (
    AgentRunResult,
    BinaryContent,
    DeferredToolRequests,
    ModelMessagesTypeAdapter,
    ModelResponse,
)
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

from a2a_frameworks.pydantic_ai.messages import dump_messages, make_prompt
from a2a_frameworks.pydantic_ai.output import ModelOutput
from a2a_frameworks.pydantic_ai.question import describe, read_results
from a2a_frameworks.pydantic_ai.steps import StepBackend, TurnDurability
from a2a_frameworks.shared.base import resolve
from a2a_frameworks.shared.model_call import (
    ErrorRow,
    ErrorText,
    ModelSilent,
    count_artifacts,
)
from a2a_frameworks.shared.questions import Field, ask_approval, ask_result
from a2a_frameworks.shared.step_call import StepCall
from a2a_tasks.agents import data, file, text
from a2a_tasks.agents.emission import Chunk, Emission

__all__ = ["PydanticAICall"]

_requests = TypeAdapter(DeferredToolRequests)
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


class PydanticAICall(StepCall):
    """An agent of pydantic-ai at work for a turn."""

    key = "pydantic_ai"
    _source: AbstractAgent[Any, Any]
    _output: ModelOutput
    _work: asyncio.Task[AgentRunResult[Any]]

    def make_field(self, asked: Mapping[str, Any]) -> Field:
        """Return the field for the approval of a call, or for the result of a tool that the client runs."""
        about = asked["id"], asked["tool"], asked["arguments"]
        is_approval = asked["is_approval"]
        return ask_approval(*about, may_change=True) if is_approval else ask_result(*about)

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        given: dict[str, Any] = {"user_prompt": None}
        if answer is None or self._store.waiting is None:
            given["user_prompt"] = await make_prompt(self._turn)
        else:
            requests = _requests.validate_python(self._store.waiting["requests"])
            given["deferred_tool_results"] = read_results(self._turn, requests, answer)
        self._output = ModelOutput(await count_artifacts(self._turn))
        backend = StepBackend(self._turn, self._output, self._agent.model_seconds)
        given |= {
            "message_history": ModelMessagesTypeAdapter.validate_python(await self._store.read()),
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
        new = dump_messages(result.new_messages())
        if isinstance(result.output, DeferredToolRequests):
            requests = _requests.dump_python(result.output, mode="json")
            return [self.wait(new, describe(result.output), requests=requests)]
        await self._store.append(new)
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
