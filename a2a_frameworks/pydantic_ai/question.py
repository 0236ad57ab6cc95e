"""Deferred tools of pydantic-ai as a question, and the answer as their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ToolCallPart

from a2a_frameworks.shared.questions import (
    MAX_TITLE_LENGTH,
    Field,
    FormQuestion,
    ask_approval,
    format_call,
    read_decision,
)
from a2a_tasks.agents import Turn

__all__ = ["make_question", "read_results"]


def make_question(deferred: DeferredToolRequests) -> FormQuestion:
    """Return the question about deferred calls of tools, each by its id."""
    approvals, calls = deferred.approvals, deferred.calls
    fields = [
        ask_approval(call.tool_call_id, call.tool_name, call.args_as_dict(), may_change=True)
        for call in approvals
    ]
    fields += [_ask_result(call) for call in calls]
    return FormQuestion(
        fields, {"calls": [_describe(call, deferred) for call in (*approvals, *calls)]}
    )


def _ask_result(call: ToolCallPart) -> Field:
    called = format_call(call.tool_name, call.args_as_dict())
    text = f"Please run {called} and answer with its result."
    schema = {"title": f"Result of {call.tool_name}"[:MAX_TITLE_LENGTH]}
    return Field(call.tool_call_id, text, schema)


def _describe(call: ToolCallPart, deferred: DeferredToolRequests) -> dict[str, Any]:
    about = {"id": call.tool_call_id, "tool": call.tool_name, "arguments": call.args_as_dict()}
    metadata = deferred.metadata.get(call.tool_call_id)
    return {**about, "metadata": metadata} if metadata else about


def read_results(
    turn: Turn, deferred: DeferredToolRequests, answer: Mapping[str, Any]
) -> DeferredToolResults:
    """Return the results in an answer."""
    ids = [call.tool_call_id for call in deferred.approvals]
    return deferred.build_results(
        approvals={id_: _read_approval(turn, answer[id_]) for id_ in ids},
        calls={call.tool_call_id: answer[call.tool_call_id] for call in deferred.calls},
    )


def _read_approval(turn: Turn, value: Any) -> ToolApproved | ToolDenied:
    approved, message, arguments = read_decision(turn, value)
    if approved:
        return ToolApproved(override_args=arguments)
    return ToolDenied(message) if message else ToolDenied()
