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

from a2a_frameworks.shared.agent_tools import ToolError, find_agent_tool
from a2a_frameworks.shared.call_ids import give_unique_ids
from a2a_frameworks.shared.message_store import read_parts
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps
from a2a_frameworks.shared.step_call import StepCall
from a2a_tasks.agents.emission import Emission

__all__ = ["AgentFrameworkCall", "read_usage"]

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
            contents = [content for message in found.messages for content in message.contents]
            calls = [content for content in contents if content.type == "function_call"]
            give_unique_ids(calls, "call_id")
            return ModelAnswer(
                json.loads(found.to_json()),
                found.text,
                found.model or "unknown",
                **read_usage(found.usage_details or {}),
            )

        response = ChatResponse.from_dict(await self._steps.ask_model(ask))
        context.result = _stream(response) if context.stream else response


def read_usage(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a request. Anthropic counts the tokens of a cache beside the input; others within it."""
    read, written = (
        details.get(f"cache_{kind}_input_token_count")
        or details.get(f"anthropic.cache_{kind}_input_tokens")
        or 0
        for kind in ("read", "creation")
    )
    given, beside = details.get("input_token_count") or 0, any("anthropic." in n for n in details)
    return {
        "input_tokens": given + (read + written if beside else 0),
        "output_tokens": details.get("output_token_count") or 0,
        "cached_tokens": read,
        "cache_write_tokens": written,
    }


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
        try:
            stored = await self._steps.call_tool(
                context.metadata["call_id"],
                context.function.name,
                given.model_dump(mode="json") if isinstance(given, BaseModel) else given,
                call,
                show=_show,
                signals=(MiddlewareException, UserInputRequiredException),
                is_durable=find_agent_tool(context.function) is not None,
            )
        except ToolError as fault:  # the framework would not tell the model why
            stored = [Content.from_text(f"Error: {fault}").to_dict()]
        context.result = [Content.from_dict(item) for item in stored]


def _show(items: list[dict[str, Any]]) -> str:
    return "\n".join(item.get("text") or f"<{item['type']}>" for item in items)


class AgentFrameworkCall(StepCall):
    """An agent at work for a turn."""

    key = "agent_framework"
    _source: RawAgent
    _work: asyncio.Task[AgentResponse[Any]]
    _session: AgentSession
    #: The number of messages before the run.
    _known: int

    @property
    def _history(self) -> str:
        """Return the name of the provider of history in the state of the session."""
        providers = self._source.context_providers
        found = (p.source_id for p in providers if isinstance(p, InMemoryHistoryProvider))
        return next(found, "in_memory")

    async def prepare(self, answer: Mapping[str, Any] | None) -> Coroutine[Any, Any, Any]:
        """Return the run."""
        await self.begin_steps()
        messages = await self._store.read()
        self._known = len(messages)
        session = {"session_id": self._turn.context_id, "state": {}}
        kept = await self._turn.conversation.memory.get(self.key, session)
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
            contents = [
                Content.from_dict(one["request"]).to_function_approval_response(
                    self.decide(one, answer[one["id"]])
                )
                for one in self.asked
            ]
        self._session = AgentSession.from_dict(kept)
        return self._run(Message("user", contents))

    async def _run(self, message: Message) -> AgentResponse[Any]:
        about: dict[str, Any] = {
            "session": self._session,
            "middleware": [ModelMiddleware(self._steps), ToolMiddleware(self._steps)],
        }
        if not self._agent.streaming:
            response: AgentResponse[Any] = await self._source.run(message, **about)
            return response
        stream = self._source.run(message, stream=True, **about)
        async for _ in stream:
            pass
        return await stream.get_final_response()

    async def conclude(self) -> list[Emission]:
        """Keep the messages and the state of a run that is over; return its question, or its structured result."""
        response = self._work.result()
        kept = json.loads(json.dumps(self._session.to_dict()))
        new = kept["state"].pop(self._history)["messages"][self._known :]
        if requests := response.user_input_requests:
            return self.ask(new, [_describe(request) for request in requests], session=kept)
        await self._store.append(new)
        await self._turn.conversation.memory.set(self.key, kept)
        return self.make_result(response.value)


def _describe(request: Content) -> dict[str, Any]:
    """Return a request as JSON."""
    call: Any = request.function_call
    about = {"id": call.call_id, "tool": call.name, "arguments": call.parse_arguments() or {}}
    return {**about, "request": json.loads(json.dumps(request.to_dict()))}
