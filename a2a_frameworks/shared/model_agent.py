"""The base class of adapters whose frameworks call models."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from a2a_frameworks.shared.base import FrameworkAgent
from a2a_frameworks.shared.model_call import ModelCall
from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission

__all__ = ["ModelAgent", "resolve"]


class ModelAgent(FrameworkAgent, abstract=True):
    """An agent whose turns are runs of a framework."""

    reports_usage = reports_tools = True
    default_input_modes = ("text/plain", "application/json")
    default_output_modes = ("text/plain", "application/json")
    #: Longest silence of a model, in seconds; then the task fails.
    model_seconds: ClassVar[float] = 300.0
    #: Longest time for the run to end when it is cancelled, in seconds.
    cancel_seconds: ClassVar[float] = 2.0

    @abstractmethod
    async def make_call(self, turn: Turn) -> ModelCall:
        """Return the run for a turn."""

    async def run(self, turn: Turn) -> AsyncIterator[Emission]:
        """Answer one message with what the agent says."""
        call = await self.make_call(turn)
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


async def resolve(value: Any) -> Any:
    """Return a value, or the result of the coroutine that stands for it."""
    return await value if inspect.isawaitable(value) else value
