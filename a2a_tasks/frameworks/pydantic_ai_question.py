"""Deferred tools of pydantic-ai as a question with a form, and the answer as their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ToolCallPart

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.frameworks.approvals import format_call

__all__ = ["ask", "read_results"]

#: The answer to the question whether a tool may be called: yes, no, or more than that.
APPROVAL: dict[str, Any] = {
    "type": ["boolean", "object"],
    "properties": {
        "approved": {"type": "boolean"},
        "arguments": {"type": "object"},
        "message": {"type": "string"},
    },
    "required": ["approved"],
    "additionalProperties": False,
}
#: Longest name of a tool in the form.
MAX_TITLE_LENGTH = 100


def ask(turn: Turn, deferred: DeferredToolRequests) -> StatusUpdate:
    """Ask the client about deferred calls of tools, each by its id."""
    approvals, calls = deferred.approvals, deferred.calls
    questions = [f"May I call {_format(call)}?" for call in approvals]
    questions += [f"What is the result of {_format(call)}?" for call in calls]
    hint = ["Please answer yes or no."] if len(approvals) == 1 and not calls else []
    forms = {call.tool_call_id: {**APPROVAL, "title": f"Call {_name(call)}"} for call in approvals}
    forms |= {call.tool_call_id: {"title": f"Result of {_name(call)}"} for call in calls}
    described = {"calls": [_describe(call, deferred) for call in (*approvals, *calls)]}
    form = {
        "type": "object",
        "properties": forms,
        "required": list(forms),
        "additionalProperties": False,
    }
    return turn.ask(" ".join(["\n".join(questions), *hint]), data(described), form=form)


def _name(call: ToolCallPart) -> str:
    return call.tool_name[:MAX_TITLE_LENGTH]


def _format(call: ToolCallPart) -> str:
    return format_call(call.tool_name, _arguments(call))


def _arguments(call: ToolCallPart) -> Mapping[str, Any]:
    found: Mapping[str, Any] = call.args_as_dict()
    return found


def _describe(call: ToolCallPart, deferred: DeferredToolRequests) -> dict[str, Any]:
    described = {"id": call.tool_call_id, "tool": call.tool_name, "arguments": _arguments(call)}
    metadata = deferred.metadata.get(call.tool_call_id)
    return {**described, "metadata": metadata} if metadata else described


def read_results(
    turn: Turn, deferred: DeferredToolRequests, answer: Mapping[str, Any]
) -> DeferredToolResults:
    """Return the results in an answer that fits the form. The words after a no in a text are its reason."""
    reason = turn.text.strip() if len(turn.text.split()) > 1 else ""
    ids = [call.tool_call_id for call in deferred.approvals]
    return deferred.build_results(
        approvals={id_: _read_approval(answer[id_], reason) for id_ in ids},
        calls={call.tool_call_id: answer[call.tool_call_id] for call in deferred.calls},
    )


def _read_approval(value: Any, reason: str) -> ToolApproved | ToolDenied:
    given = value if isinstance(value, dict) else {"approved": value}
    if given["approved"]:
        return ToolApproved(override_args=given.get("arguments"))
    message = given.get("message", reason)
    return ToolDenied(message) if message else ToolDenied()
