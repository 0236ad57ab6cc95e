"""One run of a pydantic-ai agent for a turn: its task, its words, its end, and its errors in words for people."""

from __future__ import annotations

import asyncio
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

from a2a_tasks.agents import AgentError, Turn, data, file, text
from a2a_tasks.agents.emission import Chunk, Emission
from a2a_tasks.frameworks.pydantic_ai_messages import MessageStore, make_prompt
from a2a_tasks.frameworks.pydantic_ai_output import OutputQueue
from a2a_tasks.frameworks.pydantic_ai_question import ask, read_results
from a2a_tasks.frameworks.pydantic_ai_steps import ModelSilent, StepBackend, TurnDurability
from a2a_tasks.protocol.values import UNSET

__all__ = ["PydanticAICall"]

#: Errors of the framework and the words for clients, the most particular first.
WORDS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (
        (ModelRateLimitError, ModelUnavailableError),
        "The model is busy. Please try again later.",
    ),
    (
        (ModelQuotaExceededError, ModelAuthenticationError, ModelNotFoundError),
        "The model cannot be used at present.",
    ),
    (
        ModelContextWindowExceededError,
        "This conversation has become too long for the model. Please begin a new one.",
    ),
    (ModelRequestRejectedError, "The model refused the request."),
    ((ModelAPIError, ModelSilent), "The model did not answer. Please try again later."),
    (ContentFilterError, "The model refused to answer this."),
    (UnexpectedModelBehavior, "The model gave an answer that cannot be used."),
    (UsageLimitExceeded, "This message needs more of the model than one message may use."),
)


class PydanticAICall:
    """An agent of pydantic-ai at work for a turn."""

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        turn: Turn,
        *,
        deps: Any,
        streams: bool,
        model_seconds: float,
    ) -> None:
        self._agent, self._turn, self._deps = agent, turn, deps
        self._streams, self._model_seconds = streams, model_seconds
        self._store = MessageStore(turn)
        self._output: OutputQueue
        self._work: asyncio.Task[AgentRunResult[Any]]
        #: True if the host has an emission that it may not have taken yet.
        self._handed = False

    async def begin(self) -> Emission | None:
        """Start the run. If the message was sent before the question that the task asked, return the question again."""
        given: dict[str, Any] = {"user_prompt": None}
        if self._store.requests is None:
            given["user_prompt"] = await make_prompt(self._turn)
        else:
            answer = await self._turn.answer
            if answer is None:
                return ask(self._turn, self._store.requests)
            given["deferred_tool_results"] = read_results(self._turn, self._store.requests, answer)
        before = await self._turn.task
        artifacts = 0 if before is None or before.artifacts is UNSET else len(before.artifacts)
        self._output = OutputQueue(artifacts)
        backend = StepBackend(self._turn, self._output, self._model_seconds)
        given |= {
            "message_history": await self._store.read(),
            "conversation_id": self._turn.context_id,
            "deps": self._deps,
            "capabilities": [TurnDurability(backend, streams=self._streams)],
        }
        self._work = asyncio.create_task(self._run(given))
        self._work.add_done_callback(lambda _: self._output.finish())
        return None

    async def _run(self, given: dict[str, Any]) -> AgentRunResult[Any]:
        try:
            with replay_scope():
                return await self._agent.run(**given)
        except (KeyboardInterrupt, SystemExit) as fault:  # of a task they would end the process
            raise RuntimeError(f"the agent raised {fault!r}") from fault

    async def next(self) -> Emission | None:
        """Wait for the next emission; None at the end of the run. Raises its errors, in words where there are some."""
        if self._handed:
            self._output.confirm()
        said = await self._output.next()
        self._handed = said is not None
        if said is None:
            self._raise_fault()
        return said

    def _raise_fault(self) -> None:
        # The run cancelled itself. A CancelledError would look like a stop by the host.
        if self._work.cancelled():
            raise RuntimeError("the run of the agent was cancelled")
        fault = self._work.exception()
        if fault is None:
            return
        cause: BaseException = fault
        while isinstance(cause, FallbackExceptionGroup):
            cause = cause.exceptions[-1]
        words = next((words for kinds, words in WORDS if isinstance(cause, kinds)), "")
        if words:
            raise AgentError(words) from fault
        raise fault

    async def end(self, seconds: float) -> None:
        """Stop the run if it is not over, and wait for its end."""
        if not self._work.done():
            self._work.cancel()
            await asyncio.wait([self._work], timeout=seconds)
        if self._work.done() and not self._work.cancelled():
            self._work.exception()  # asyncio would log it otherwise

    async def conclude(self) -> list[Emission]:
        """Keep the messages of a run that is over; return its question, or its result unless it was said already."""
        result = self._work.result()
        if isinstance(result.output, DeferredToolRequests):
            self._store.wait(result.new_messages(), result.output)
            return [ask(self._turn, result.output)]
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
