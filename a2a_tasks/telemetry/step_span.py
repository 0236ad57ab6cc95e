"""The span of a durable step that is executed. A step that is replayed is an event of the current span."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

from opentelemetry import trace
from opentelemetry.trace import Span

from a2a_tasks.telemetry import tracing

__all__ = ["find_tool", "note_replay", "step_span"]

#: The names of steps in which adapters of frameworks call tools (`frameworks.model_steps`).
_TOOL = re.compile(r"(?:^|/)tool:([^:]+):")


def find_tool(step: str) -> str:
    """Return the tool that the step of this name calls; empty = none."""
    found = _TOOL.search(step)
    return found[1] if found else ""


def step_span(name: str) -> AbstractContextManager[Span | None]:
    """Return the span of a step, or of the tool that it calls, to be entered around its work."""
    if not tracing.is_on():
        return nullcontext()
    about: dict[str, str | int | float | bool] = {"a2a_host.step": name}
    if tool := find_tool(name):
        about |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        about |= {"langfuse.observation.type": "tool", "openinference.span.kind": "TOOL"}
        return tracing.span(f"execute_tool {tool}", attributes=about)
    about |= {"langfuse.observation.type": "span", "openinference.span.kind": "CHAIN"}
    return tracing.span(f"step {name}", attributes=about)


def note_replay(name: str) -> None:
    """Add an event to the current span: the step was not executed, since its result is stored."""
    if tracing.is_on():
        trace.get_current_span().add_event("step replayed", {"a2a_host.step": name})
