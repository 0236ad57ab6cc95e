"""The span of an attempt of a run, with those of its wait in the queue and of the previous attempt, if that died."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind

from a2a_tasks.execution.active_run import ActiveRun
from a2a_tasks.execution.recorder import Recorder
from a2a_tasks.execution.turns import RunRequest
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.attributes import of_task
from a2a_tasks.telemetry.trace_context import NONE, span_id_of

__all__ = ["AttemptSpan", "with_output"]

#: Minimum seconds of a wait in the queue that gets a span.
SHORT_SECONDS = 0.1
NANO = 1_000_000_000


class AttemptSpan:
    """The span of an attempt, which is the current one for its agent. It has an id that the next attempt can know."""

    def __init__(self, active: ActiveRun, message_id: str, recorder: Recorder) -> None:
        self._active, self._run = active, active.run
        self._message_id, self._recorder = message_id, recorder
        self._span: Span | None = None

    def __enter__(self) -> AttemptSpan:
        if not tracing.is_on():
            return self
        run, request = self._run, self._active.request
        agent = run.scope.agent
        about = {**of_task(run.task_id, run.context_id), "gen_ai.agent.name": agent}
        more: dict[str, str | int | float] = {}
        if request.sent_at and not run.begun_before:
            more["a2a_host.queue_seconds"] = _tell_wait(request, agent, about)
        if run.scope.tenant:
            more["a2a.tenant"] = run.scope.tenant
        self._span = tracing.begin(
            f"invoke_agent {agent}",
            SpanKind.CONSUMER,
            {
                **about,
                **more,
                **tracing.user(request.principal),
                "a2a.message.id": self._message_id,
                "a2a_host.attempt": run.attempt,
                "gen_ai.operation.name": "invoke_agent",
                "langfuse.observation.type": "agent",
                "openinference.span.kind": "AGENT",
            },
            parent=request.trace.as_parent(),
            links=_link_before(request, run, about),
            id_=span_id_of(run.token),
        )
        tracing.content(self._span, "input.value", run.input)
        tracing.join(NONE, run.task_id, run.context_id)
        self._token = tracing.enter(self._span)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._span is None:
            return
        if fault is not None and not self._active.parked:
            tracing.fail(self._span, type(fault).__name__, ours=isinstance(fault, Exception))
        fenced = self._active.fenced or isinstance(fault, LeaseLost)
        state = self._recorder.state.word
        self._span.set_attributes({"a2a_host.fenced": fenced, "a2a.task.state": state})
        tracing.leave(self._span, self._token)


def with_output(values: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Return the values of an agent; their texts become an attribute of the span, with A2A_TRACE_CONTENT."""
    return _hear(values) if tracing.shows_content() else values


async def _hear(values: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    said = ""
    try:
        async for value in values:
            if len(said) < 2 * tracing.MAX_CONTENT:
                parts = getattr(value, "parts", ())
                texts = [part.text for part in parts if isinstance(part.text, str)]
                said += value if isinstance(value, str) else "".join(texts)
            yield value
    finally:
        tracing.content(trace.get_current_span(), "output.value", said)


def _tell_wait(request: RunRequest, agent: str, about: dict[str, str]) -> float:
    """Make the span of the wait until now, and return its seconds."""
    seconds = max(0.0, time.time() - request.sent_at)
    if seconds >= SHORT_SECONDS:
        begun = int(request.sent_at * NANO)
        waited = tracing.begin(
            f"queue {agent}", attributes=about, parent=request.trace.as_parent(), start=begun
        )
        tracing.end(waited)
    return seconds


def _link_before(request: RunRequest, run: ClaimedRun, about: dict[str, str]) -> list[Link]:
    """Return the link to the previous attempt. If that died and could not send its span, make the span, too."""
    before = request.before
    if before is None or not request.trace.traceparent:
        return []
    id_ = int(before.span_id, 16)
    if before.begun:
        lost = tracing.begin(
            f"invoke_agent {run.scope.agent}",
            SpanKind.CONSUMER,
            {**about, "gen_ai.operation.name": "invoke_agent", "a2a_host.attempt": before.attempt},
            parent=request.trace.as_parent(),
            start=int(before.begun * NANO),
            id_=id_,
        )
        tracing.fail(lost, "ProcessDied")
        tracing.end(lost, int(before.noticed * NANO))
    return [Link(request.trace.within(id_), {"a2a_host.attempt": before.attempt})]
