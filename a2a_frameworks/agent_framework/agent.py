"""Agents of Microsoft's Agent Framework, unchanged: streaming, approvals, memory, and no call of a model made twice.

docs/frameworks/agent-framework.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent, resolve
from a2a_frameworks.shared.model_call import ModelCall
from a2a_tasks.agents import Turn

__all__ = ["AgentFrameworkAgent"]


class AgentFrameworkAgent(ModelAgent, abstract=True):
    """An agent that an `agent_framework.Agent` works for."""

    framework = "agent_framework"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        if hosted is None:
            return "is missing"
        # the framework is not loaded before it is needed
        from agent_framework import RawAgent  # noqa: PLC0415

        if not isinstance(hosted, RawAgent):
            return f"is a {type(hosted).__name__}, not an Agent of the Agent Framework"
        return ""

    async def make_call(self, turn: Turn) -> ModelCall:
        """Return the run of the agent for a turn."""
        from a2a_frameworks.agent_framework.call import AgentFrameworkCall  # noqa: PLC0415

        return AgentFrameworkCall(await resolve(self.build(turn)), turn, self)
