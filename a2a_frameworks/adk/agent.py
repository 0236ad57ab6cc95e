"""Agents of Google's Agent Development Kit, unchanged: streaming, confirmations, memory, and no call of a model made twice.

docs/frameworks/adk.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent, resolve
from a2a_frameworks.shared.model_call import ModelCall
from a2a_tasks.agents import Turn

__all__ = ["AdkAgent"]


class AdkAgent(ModelAgent, abstract=True):
    """An agent that a `google.adk.agents.BaseAgent` works for."""

    framework = "google.adk"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
    #: Most requests to models in one turn.
    max_llm_calls: ClassVar[int] = 50

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        if hosted is None:
            return "is missing"
        # the framework is not loaded before it is needed
        from google.adk.agents import BaseAgent  # noqa: PLC0415

        if not isinstance(hosted, BaseAgent):
            return f"is a {type(hosted).__name__}, not an agent of the Agent Development Kit"
        return ""

    async def make_call(self, turn: Turn) -> ModelCall:
        """Return the run of the agent for a turn."""
        from a2a_frameworks.adk.call import AdkCall  # noqa: PLC0415

        return AdkCall(await resolve(self.build(turn)), turn, self)
