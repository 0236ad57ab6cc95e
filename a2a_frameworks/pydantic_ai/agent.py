"""Agents of pydantic-ai, unchanged: streaming, tools with approval, memory, and no call of a model made twice.

docs/frameworks/pydantic-ai.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent
from a2a_tasks.agents import Turn

__all__ = ["PydanticAIAgent"]


class PydanticAIAgent(ModelAgent, abstract=True):
    """An agent that a `pydantic_ai.Agent` works for."""

    framework = "pydantic_ai"
    call_class = "a2a_frameworks.pydantic_ai.call:PydanticAICall"
    source_title = "an agent of pydantic-ai"
    attribute = "agent"
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None

    def make_deps(self, turn: Turn) -> Any:
        """Return the dependencies of a run (`ctx.deps` in tools). An override may be a coroutine function."""
        return turn

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        from a2a_frameworks.pydantic_ai.steps import find_unfit  # noqa: PLC0415

        return super().find_fault(hosted) or find_unfit(hosted)
