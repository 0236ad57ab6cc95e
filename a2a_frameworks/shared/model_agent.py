"""The base class of adapters whose frameworks call models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pkgutil import resolve_name
from typing import Any, ClassVar

from a2a_frameworks.shared.base import FrameworkAgent, resolve
from a2a_frameworks.shared.model_call import ModelCall
from a2a_frameworks.table import FRAMEWORKS
from a2a_tasks.agents import Turn
from a2a_tasks.agents.emission import Emission

__all__ = ["ModelAgent"]


class ModelAgent(FrameworkAgent, abstract=True):
    """An agent whose turns are runs of a framework."""

    reports_usage = reports_tools = True
    default_input_modes = ("text/plain", "application/json")
    default_output_modes = ("text/plain", "application/json")
    #: The `ModelCall` of the framework, as `module:name`: the framework is not loaded before it is needed.
    call_class: ClassVar[str] = ""
    #: The kind of the object, for the check: `an agent of ...`.
    source_title: ClassVar[str] = ""
    #: Longest silence of a model, in seconds; then the task fails.
    model_seconds: ClassVar[float] = 300.0
    #: Longest time for the run to end when it is cancelled, in seconds.
    cancel_seconds: ClassVar[float] = 2.0

    def find_fault(self, hosted: Any) -> str:
        """Return why the object cannot be hosted; empty = it can."""
        if fault := super().find_fault(hosted):
            return fault
        rows = [row for row in FRAMEWORKS if row.package == self.framework]
        if all(row.makes(hosted) for row in rows):
            return ""
        return f"is a {type(hosted).__name__}, not {self.source_title}"

    async def run(self, turn: Turn) -> AsyncIterator[Emission]:
        """Answer one message with what the agent says."""
        call: ModelCall = resolve_name(self.call_class)(await resolve(self.build(turn)), turn, self)
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
