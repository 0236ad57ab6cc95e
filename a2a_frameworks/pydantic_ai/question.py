"""Deferred tools of pydantic-ai as JSON, and the answer as their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ToolCallPart

from a2a_frameworks.shared.questions import read_decision
from a2a_tasks.agents import Turn

__all__ = ["describe", "read_results"]


def describe(deferred: DeferredToolRequests) -> list[dict[str, Any]]:
    """Return deferred calls of tools as JSON, first those that need an approval."""
    approvals = [_describe(call, deferred) | {"is_approval": True} for call in deferred.approvals]
    calls = [_describe(call, deferred) | {"is_approval": False} for call in deferred.calls]
    return [*approvals, *calls]


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
