"""Agents of the OpenAI Agents SDK, unchanged: streaming, tools with approval, memory, and no call of a model made twice.

docs/frameworks/openai-agents.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent
from a2a_tasks.agents import Turn

__all__ = ["OpenAIAgentsAgent"]


class OpenAIAgentsAgent(ModelAgent, abstract=True):
    """An agent that an `agents.Agent` works for."""

    framework = "agents"
    call_class = "a2a_frameworks.openai_agents.call:OpenAIAgentsCall"
    source_title = "an agent of the OpenAI Agents SDK"
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
