"""One run of an agent of the Agent Framework for a turn. Its middleware makes steps of the calls of models and tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    InMemoryHistoryProvider,
    Message,
    MiddlewareException,
    RawAgent,
    ResponseStream,
    UserInputRequiredException,
)
from pydantic import BaseModel

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import Chunk, Emission
from a2a_tasks.frameworks.message_store import MessageStore, read_parts
from a2a_tasks.frameworks.model_call import ModelCall, count_artifacts
from a2a_tasks.frameworks.model_steps import ModelAnswer, ModelSteps
from a2a_tasks.frameworks.openai_words import find_cause_words
from a2a_tasks.frameworks.output import OutputQueue, make_call, make_result
from a2a_tasks.frameworks.questions import FormQuestion, ask_approval, read_decision

__all__ = ["AgentFrameworkCall"]

#: The key of the messages and of the state of the session in the conversation, and of a task that waits.
KEY = "agent_framework"
Next = Callable[[], Awaitable[None]]


class ModelMiddleware(ChatMiddleware):
    """Middleware that asks the model in steps."""

    def __init__(self, steps: ModelSteps) -> None:
        self._steps = steps

    async def process(self, context: ChatContext, call_next: Next) -> None:
        """Ask the model, or take its stored answer."""

        async def ask() -> ModelAnswer:
            await call_next()
            found = context.result
            if isinstance(found, ResponseStream):
                async for update in found:
                    self._steps.hear(update.text)
                found = await found.get_final_response()
            used = found.usage_details or {}
            return ModelAnswer(
                json.loads(found.to_json()),
                found.text,
                found.model or "unknown",
                used.get("input_token_count") or 0,
                used.get("output_token_count") or 0,
                used.get("cache_read_input_token_count") or 0,
            )

        response = ChatResponse.from_dict(await self._steps.ask_model(ask))
        context.result = _stream(response) if context.stream else response


def _stream(response: ChatResponse[Any]) -> ResponseStream[Any, Any]:
    """Return an answer as a stream: the words went to the client already."""

    async def updates() -> AsyncIterator[ChatResponseUpdate]:
        for message in response.messages:
            yield ChatResponseUpdate(
                contents=message.contents,
                role=message.role,
                message_id=message.message_id,
                response_id=response.response_id,
                conversation_id=response.conversation_id,
                finish_reason=response.finish_reason,
            )

    return ResponseStream(updates(), finalizer=lambda _: response)


class ToolMiddleware(FunctionMiddleware):
    """Middleware that calls tools in steps."""

    def __init__(self, steps: ModelSteps) -> None:
        self._steps = steps

    async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
        """Call the tool, or take its stored result."""

        async def call() -> Any:
            await call_next()
            result = context.result
            items = result if isinstance(result, list) else [Content.from_text(str(result))]
            return [item.to_dict() for item in items]

        given = context.arguments
        stored = await self._steps.call_tool(
            context.metadata["call_id"],
            context.function.name,
            given.model_dump(mode="json") if isinstance(given, BaseModel) else given,
            call,
            show=lambda items: "\n".join(item.get("text") or f"<{item['type']}>" for item in items),
            signals=(MiddlewareException, UserInputRequiredException),
        )
        context.result = [Content.from_dict(item) for item in stored]


class AgentFrameworkCall(ModelCall):
    """An agent at work for a turn."""

    _output: OutputQueue
    _work: asyncio.Task[AgentResponse[Any]]

    def __init__(self, source: RawAgent, turn: Turn, agent: Any) -> None:
        self._source, self._turn, self._agent = source, turn, agent
        self._store = MessageStore(turn, KEY)
        providers = [p for p in source.context_providers if isinstance(p, InMemoryHistoryProvider)]
        self._history = next((p.source_id for p in providers), "in_memory")
        self._known = 0

    @property
    def _requests(self) -> list[Content]:
        waiting = self._store.waiting
        return [Content.from_dict(one) for one in waiting["requests"]] if waiting else []

    def find_question(self) -> FormQuestion | None:
        """Return the question about calls of tools that the task asked before."""
        return _make_question(self._requests) if self._requests else None

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        self._output = OutputQueue(await count_artifacts(self._turn))
        messages = await self._store.read()
        self._known = len(messages)
        session = {"session_id": self._turn.context_id, "state": {}}
        kept = await self._turn.conversation.memory.get(KEY, session)
        if self._store.waiting:
            kept = self._store.waiting["session"]
        kept["state"][self._history] = {"messages": messages}
        if answer is None:
            contents = [
                Content.from_text(part)
                if isinstance(part, str)
                else Content.from_data(part.content, part.media_type, name=part.name)
                for part in await read_parts(self._turn)
            ]
        else:
            contents = [self._decide(one, answer) for one in self._requests]
        self._session = AgentSession.from_dict(kept)
        return self._run(Message("user", contents))

    def _decide(self, request: Content, answer: Mapping[str, Any]) -> Content:
        call = _describe(request)
        decision = read_decision(self._turn, answer[call["id"]])
        if not decision.approved:
            refused = decision.message or "It was not approved."
            self._output.put(make_result(call["id"], refused, error=True))
        return request.to_function_approval_response(decision.approved)

    async def _run(self, message: Message) -> AgentResponse[Any]:
        steps = ModelSteps(self._turn, self._output, self._agent.model_seconds)
        about: dict[str, Any] = {
            "session": self._session,
            "middleware": [ModelMiddleware(steps), ToolMiddleware(steps)],
        }
        if not self._agent.streaming:
            response: AgentResponse[Any] = await self._source.run(message, **about)
            return response
        stream = self._source.run(message, stream=True, **about)
        async for _ in stream:
            pass
        return await stream.get_final_response()

    def find_words(self, fault: BaseException) -> str:
        """Return the words for an error."""
        return find_cause_words(fault)

    async def conclude(self) -> list[Emission]:
        """Keep the messages and the state of a run that is over; return its question, or its structured result."""
        response = self._work.result()
        kept = json.loads(json.dumps(self._session.to_dict()))
        new = kept["state"].pop(self._history)["messages"][self._known :]
        if requests := response.user_input_requests:
            asked = [json.loads(json.dumps(request.to_dict())) for request in requests]
            self._store.wait(new, requests=asked, session=kept)
            calls = map(_describe, requests)
            told = [make_call(one["id"], one["tool"], one["arguments"]) for one in calls]
            return [*told, _make_question(requests).ask(self._turn)]
        await self._store.append(new)
        await self._turn.conversation.memory.set(KEY, kept)
        if not isinstance(response.value, BaseModel):
            return []
        part = data(response.value.model_dump(mode="json"))
        schema = type(response.value).model_json_schema(mode="serialization")
        name = self._output.name_artifact("result")
        return [Chunk(artifact_id=name, parts=(part,), last=True, metadata={"schema": schema})]


def _describe(request: Content) -> dict[str, Any]:
    """Return a call as programs read it."""
    call: Any = request.function_call
    return {"id": call.call_id, "tool": call.name, "arguments": call.parse_arguments() or {}}


def _make_question(requests: list[Content]) -> FormQuestion:
    """Return the question whether calls may be made."""
    calls = [_describe(request) for request in requests]
    fields = [ask_approval(call["id"], call["tool"], call["arguments"]) for call in calls]
    return FormQuestion(fields, {"calls": calls})
