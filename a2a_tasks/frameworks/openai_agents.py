"""Agents of the OpenAI Agents SDK, unchanged: streaming, tools with approval, memory, and no call of a model made twice.

docs/frameworks.md is the guide.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission
from a2a_tasks.frameworks.base import FrameworkAgent

__all__ = ["OpenAIAgentsAgent"]


class OpenAIAgentsAgent(FrameworkAgent, abstract=True):
    """An agent that an `agents.Agent` works for."""

    framework = "agents"
    attribute = "agent"
    reports_usage = True
    default_input_modes = ("text/plain", "application/json")
    default_output_modes = ("text/plain", "application/json")
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
    #: The `agents.RunConfig` of each run; None = the SDK's own.
    run_config: ClassVar[Any] = None
    #: Most requests to models in one turn.
    max_turns: ClassVar[int] = 10
    #: True if the SDK may export traces: to OpenAI, unless the app has set its trace processors.
    exports_traces: ClassVar[bool] = False
    #: Longest silence of the model, in seconds; then the task fails.
    model_seconds: ClassVar[float] = 300.0
    #: Longest time for the run to end when it is cancelled, in seconds.
    cancel_seconds: ClassVar[float] = 2.0

    def make_context(self, turn: Turn) -> Any:
        """Return the context of a run (`wrapper.context` in tools). An override may be a coroutine function."""
        return turn

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        if hosted is None:
            return "is missing"
        from agents import Agent  # noqa: PLC0415 - the framework is not loaded before it is needed

        if not isinstance(hosted, Agent):
            return f"is a {type(hosted).__name__}, not an agent of the OpenAI Agents SDK"
        return ""

    async def run(self, turn: Turn) -> AsyncIterator[Emission]:
        """Answer one message with what the agent says."""
        from a2a_tasks.frameworks.openai_agents_call import OpenAIAgentsCall  # noqa: PLC0415

        built, context = self.build(turn), self.make_context(turn)
        call = OpenAIAgentsCall(
            await built if inspect.isawaitable(built) else built,
            turn,
            context=await context if inspect.isawaitable(context) else context,
            run_config=self.run_config,
            max_turns=self.max_turns,
            traces=self.exports_traces,
            streams=self.streaming,
            model_seconds=self.model_seconds,
        )
        if (question := await call.begin()) is not None:
            yield question
            return
        try:
            while (said := await call.next()) is not None:
                yield said
        finally:
            await call.end(self.cancel_seconds)
        for said in await call.conclude():
            yield said
