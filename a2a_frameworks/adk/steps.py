"""Durability of a run of the Agent Development Kit: each answer of a model and each call of a tool is a step of the turn."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.events import EventActions
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai.types import GenerateContentResponseUsageMetadata
from pydantic import PrivateAttr

from a2a_frameworks.shared.agent_tools import find_agent_tool
from a2a_frameworks.shared.call_ids import give_unique_ids
from a2a_frameworks.shared.model_steps import ModelAnswer, ModelSteps

__all__ = ["ModelRefused", "copy_agent"]


class ModelRefused(Exception):
    """The model gave a code in place of an answer."""


class ToolWaits(Exception):
    """The call of a tool waits for the client."""

    def __init__(self, result: Any) -> None:
        """Make one; `result` is what the framework gets meanwhile."""
        super().__init__()
        self.result = result


def copy_agent(agent: BaseAgent, steps: ModelSteps) -> BaseAgent:
    """Return a copy of an agent, and of those below it, that takes steps."""
    copied = agent.clone()
    _let_take_steps(agent, copied, steps)
    return copied


def _let_take_steps(
    agent: BaseAgent, copied: BaseAgent, steps: ModelSteps, place: str = ""
) -> None:
    """Let an agent and those below it take steps; `place` tells apart calls of agents that work side by side."""
    if isinstance(agent, LlmAgent):
        copied.model = AdkStepModel.wrap(agent.canonical_model, steps, f"{agent.name}/")
        authors = agent.canonical_before_tool_callbacks
        copied.before_tool_callback = [*authors, _make_caller(steps, place)]
    for below, copied_below in zip(agent.sub_agents, copied.sub_agents, strict=True):
        _let_take_steps(below, copied_below, steps, f"{below.name}/")


class AdkStepModel(BaseLlm):
    """A model whose answers are steps."""

    _llm: BaseLlm = PrivateAttr()
    _steps: ModelSteps = PrivateAttr()
    _place: str = PrivateAttr()

    @classmethod
    def wrap(cls, llm: BaseLlm, steps: ModelSteps, place: str) -> AdkStepModel:
        """Return a model whose answers are steps of the agent of that name."""
        made = cls(model=llm.model)
        made._llm, made._steps, made._place = llm, steps, place
        return made

    @property
    def capabilities(self) -> Any:
        """Return the capabilities of the model."""
        return self._llm.capabilities

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the answer as a whole: the words went to the client already."""

        async def ask() -> ModelAnswer:
            whole: list[LlmResponse] = []
            async with aclosing(self._llm.generate_content_async(llm_request, stream)) as answers:
                async for response in answers:
                    self._steps.hear(read_text(response) if response.partial else "")
                    if not response.partial:
                        whole.append(response)
            return _make_answer(whole, self.model)

        for stored in await self._steps.ask_model(ask, place=self._place):
            yield LlmResponse.model_validate_json(json.dumps(stored))


def read_text(response: LlmResponse) -> str:
    """Return the text of an answer, without the thoughts of the model."""
    parts = (response.content.parts if response.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _make_answer(responses: list[LlmResponse], model: str) -> ModelAnswer:
    used = GenerateContentResponseUsageMetadata()
    for response in responses:
        if response.error_code and not response.content:
            raise ModelRefused(f"{response.error_code}: {response.error_message}")
        used = response.usage_metadata or used
    contents = [response.content for response in responses if response.content]
    parts = [part for content in contents for part in content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call]
    for call in calls:
        call.id = call.id or f"adk-{uuid.uuid4()}"  # equal in every attempt
    give_unique_ids(calls, "id")
    return ModelAnswer(
        [response.model_dump(mode="json", exclude_none=True) for response in responses],
        "".join(map(read_text, responses)),
        model,
        used.prompt_token_count or 0,
        (used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
        used.cached_content_token_count or 0,
    )


def _make_caller(steps: ModelSteps, place: str) -> Callable[..., Any]:
    """Return the last callback before a tool: it calls the tool in a step."""

    async def call_tool(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> Any:
        actions = tool_context.actions

        async def call() -> Any:
            result = await _let_wait(tool).run_async(args=args, tool_context=tool_context)
            if actions.requested_tool_confirmations or actions.requested_auth_configs:
                raise ToolWaits(result)
            done = actions.model_dump(mode="json", exclude_defaults=True)
            # one that runs long and returns nothing has no answer yet
            later = tool.is_long_running and not result
            return {"result": {} if later else _make_result(result), "actions": done}

        confirmed = tool_context.tool_confirmation and tool_context.tool_confirmation.confirmed
        gated = not confirmed and await tool.check_require_confirmation(args, tool_context) is True
        if gated:  # its result is not the last one
            return None
        try:
            stored = await steps.call_tool(
                place + (tool_context.function_call_id or ""),
                tool.name,
                args,
                call,
                show=lambda stored: stored["result"],
                fails=lambda stored: "error" in stored["result"],
                signals=(ToolWaits,),
                is_durable=find_agent_tool(tool) is not None,
            )
        except ToolWaits as waits:
            return _make_result(waits.result)
        done = EventActions.model_validate(stored["actions"])
        actions.state_delta.update(done.state_delta)
        for name in done.model_fields_set - {"state_delta"}:
            setattr(actions, name, getattr(done, name))
        return stored["result"]

    return call_tool


def _let_wait(tool: BaseTool) -> BaseTool:
    """Return a tool that calls a plain function in a thread, with the context of the call: it would stop the event loop."""
    if not isinstance(tool, FunctionTool):
        return tool
    function = tool.func
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object, it may be asynchronous
    ):
        return tool

    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> Any:
        result = await asyncio.to_thread(function, *arguments, **named)
        return await result if inspect.isawaitable(result) else result

    copied = copy.copy(tool)
    copied.func = call
    return copied


def _make_result(result: Any) -> dict[str, Any]:
    """Return a result as the framework gives it to the model."""
    return result if isinstance(result, dict) and result else {"result": result}
