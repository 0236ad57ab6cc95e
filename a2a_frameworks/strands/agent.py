"""Agents of Strands, unchanged: streaming, interrupts, memory, and no call of a model made twice.

docs/frameworks/strands.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent, resolve
from a2a_frameworks.shared.model_call import ModelCall
from a2a_tasks.agents import Turn

__all__ = ["StrandsAgent"]


class StrandsAgent(ModelAgent, abstract=True):
    """An agent that a `strands.Agent` works for."""

    framework = "strands"
    attribute = "agent"
    #: The agent. It has state, so that turns of a process wait for each other; `build` may make one for each turn.
    agent: ClassVar[Any] = None

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        if hosted is None:
            return "is missing"
        # the framework is not loaded before it is needed
        from a2a_frameworks.strands.call import find_unfit  # noqa: PLC0415

        return find_unfit(hosted)

    async def make_call(self, turn: Turn) -> ModelCall:
        """Return the run of the agent for a turn."""
        from a2a_frameworks.strands.call import StrandsCall  # noqa: PLC0415

        return StrandsCall(await resolve(self.build(turn)), turn, self)
