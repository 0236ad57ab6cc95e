"""The attributes of the host's spans, in one table; docs/telemetry.md shows it.

Names with `a2a.` are from the conventions for A2A that are proposed to OpenTelemetry
(open-telemetry/semantic-conventions-genai, pull request 195), names with `gen_ai.` from those for generative AI.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TABLE", "AttributeRow", "SpanName", "of_task"]

#: Maximum number of characters of an id that a client chose.
MAX_ID = 256


class SpanName:
    """The kinds of spans, as the table names them."""

    OPERATION, QUEUE, ATTEMPT, STEP = "operation", "queue", "invoke_agent", "step"
    CALL, WEBHOOK = "call", "webhook"


_O, _Q, _A, _S = SpanName.OPERATION, SpanName.QUEUE, SpanName.ATTEMPT, SpanName.STEP
_C, _W = SpanName.CALL, SpanName.WEBHOOK


class AttributeRow(NamedTuple):
    """An attribute, and the spans that may have it."""

    name: str
    spans: tuple[str, ...]
    meaning: str


TABLE = (
    AttributeRow("a2a.method.name", (_O,), "the operation, by its name in A2A 1.0"),
    AttributeRow("a2a.task.id", (_O, _Q, _A, _S, _C, _W), "the id of the task"),
    AttributeRow("a2a.context.id", (_O, _Q, _A, _S, _C), "the id of the context"),
    AttributeRow("gen_ai.conversation.id", (_O, _Q, _A, _S, _C), "the id of the context"),
    AttributeRow("session.id", (_O, _Q, _A, _S, _C), "the id of the context, for Langfuse and Phoenix"),
    AttributeRow("a2a.message.id", (_O, _A), "the id of the client's message"),
    AttributeRow("a2a.tenant", (_O, _A, _W), "the tenant of the task"),
    AttributeRow("a2a.task.state", (_O, _A), "the state of the task in the answer, or at the end of the attempt"),
    AttributeRow("error.type", (_O, _A, _S, _C, _W), "the name of the error"),
    AttributeRow("user.id", (_O, _A), "a keyed hash of the principal; the principal itself with A2A_TRACE_CONTENT"),
    AttributeRow("gen_ai.operation.name", (_A, _S), "`invoke_agent`; `execute_tool` for the step of a tool"),
    AttributeRow("gen_ai.agent.name", (_O, _Q, _A), "the slug of the agent"),
    AttributeRow("gen_ai.tool.name", (_S,), "the name of the tool"),
    AttributeRow("langfuse.observation.type", (_A, _S), "`agent`, `tool` or `span`"),
    AttributeRow("openinference.span.kind", (_A, _S), "`AGENT`, `TOOL` or `CHAIN`, for Phoenix"),
    AttributeRow("input.value", (_A,), "the client's message, with A2A_TRACE_CONTENT"),
    AttributeRow("output.value", (_A, _S), "what the agent yielded, or the result of the step, with A2A_TRACE_CONTENT"),
    AttributeRow("a2a_host.dialect", (_O,), "the dialect of the request"),
    AttributeRow("a2a_host.binding", (_O,), "the binding of the request"),
    AttributeRow("a2a_host.attempt", (_A,), "the number of the attempt, from 1"),
    AttributeRow("a2a_host.queue_seconds", (_A,), "seconds from the acceptance to the first attempt"),
    AttributeRow("a2a_host.fenced", (_A,), "true if the attempt lost its lease, so that its output did not count"),
    AttributeRow("a2a_host.step", (_S,), "the name of the step"),
    AttributeRow("a2a_host.delivery_attempt", (_W,), "the number of the attempt at the webhook, from 1"),
    AttributeRow("http.request.method", (_C, _W), "the method of the call"),
    AttributeRow("server.address", (_C, _W), "the host that is called, without path and query"),
    AttributeRow("http.response.status_code", (_C, _W), "the status of the answer"),
)  # fmt: skip


def of_task(task_id: str, context_id: str) -> dict[str, str]:
    """Return the attributes for a task and its context."""
    task_id, context_id = task_id[:MAX_ID], context_id[:MAX_ID]
    return {
        "a2a.task.id": task_id,
        "a2a.context.id": context_id,
        "gen_ai.conversation.id": context_id,
        "session.id": context_id,
    }
