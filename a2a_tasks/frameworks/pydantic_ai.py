"""Agents of pydantic-ai, unchanged: streaming, tools with approval, memory, and no call of a model made twice.

docs/frameworks.md is the guide.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission
from a2a_tasks.frameworks.base import FrameworkAgent

__all__ = ["PydanticAIAgent"]


class PydanticAIAgent(FrameworkAgent, abstract=True):
    """An agent that a `pydantic_ai.Agent` works for."""

    framework = "pydantic_ai"
    attribute = "agent"
    reports_usage = True
    reports_tools = True
    default_input_modes = ("text/plain", "application/json")
    default_output_modes = ("text/plain", "application/json")
    #: The agent; one for all turns.
    agent: ClassVar[Any] = None
    #: Longest silence of the model, in seconds; then the task fails.
    model_seconds: ClassVar[float] = 300.0
    #: Longest time for the run to end when it is cancelled, in seconds.
    cancel_seconds: ClassVar[float] = 2.0

    def make_deps(self, turn: Turn) -> Any:
        """Return the dependencies of a run (`ctx.deps` in tools). An override may be a coroutine function."""
        return turn

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        if hosted is None:
            return "is missing"
        # the framework is not loaded before it is needed
        from a2a_tasks.frameworks.pydantic_ai_steps import find_unfit  # noqa: PLC0415

        return find_unfit(hosted)

    async def run(self, turn: Turn) -> AsyncIterator[Emission]:
        """Answer one message with what the agent says."""
        from a2a_tasks.frameworks.pydantic_ai_call import PydanticAICall  # noqa: PLC0415

        built, deps = self.build(turn), self.make_deps(turn)
        call = PydanticAICall(
            await built if inspect.isawaitable(built) else built,
            turn,
            deps=await deps if inspect.isawaitable(deps) else deps,
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
