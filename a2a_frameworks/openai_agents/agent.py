"""Agents of the OpenAI Agents SDK, unchanged: streaming, tools with approval, memory, and no call of a model made twice.

docs/frameworks/openai-agents.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent, resolve
from a2a_frameworks.shared.model_call import ModelCall
from a2a_tasks.agents import Turn

__all__ = ["OpenAIAgentsAgent"]


class OpenAIAgentsAgent(ModelAgent, abstract=True):
    """An agent that an `agents.Agent` works for."""

    framework = "agents"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
    #: The `agents.RunConfig` of each run; None = the SDK's own.
    run_config: ClassVar[Any] = None
    #: Most requests to models in one turn.
    max_turns: ClassVar[int] = 10
    #: True if the SDK may export traces: to OpenAI, unless the app has set its trace processors.
    exports_traces: ClassVar[bool] = False

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

    async def make_call(self, turn: Turn) -> ModelCall:
        """Return the run of the agent for a turn."""
        from a2a_frameworks.openai_agents.call import OpenAIAgentsCall  # noqa: PLC0415

        return OpenAIAgentsCall(
            await resolve(self.build(turn)),
            turn,
            context=await resolve(self.make_context(turn)),
            run_config=self.run_config,
            max_turns=self.max_turns,
            traces=self.exports_traces,
            streams=self.streaming,
            model_seconds=self.model_seconds,
        )
