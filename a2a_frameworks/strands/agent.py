"""Agents of Strands, unchanged: streaming, interrupts, memory, and no call of a model made twice.

docs/frameworks/strands.md is the guide.
"""

from __future__ import annotations

from typing import Any, ClassVar

from a2a_frameworks.shared.model_agent import ModelAgent

__all__ = ["StrandsAgent"]


class StrandsAgent(ModelAgent, abstract=True):
    """An agent that a `strands.Agent` works for."""

    framework = "strands"
    call_class = "a2a_frameworks.strands.call:StrandsCall"
    source_title = "an agent of Strands"
    attribute = "agent"
    #: The agent. It has state, so that turns of a process wait for each other; `build` may make one for each turn.
    agent: ClassVar[Any] = None

    def find_fault(self, hosted: Any) -> str:
        """Return why the agent cannot be hosted; empty = it can."""
        from a2a_frameworks.strands.call import find_unfit  # noqa: PLC0415

        return super().find_fault(hosted) or find_unfit(hosted)
