"""Calls of tools of the OpenAI Agents SDK that need approval, as a question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents.items import ToolApprovalItem

from a2a_frameworks.shared.questions import FormQuestion, ask_approval

__all__ = ["describe", "make_question", "read_arguments"]


def describe(item: ToolApprovalItem) -> dict[str, Any]:
    """Return a call as programs read it."""
    arguments = read_arguments(item.arguments or "{}")
    return {
        "id": item.call_id or "",
        "tool": item.qualified_name or "a tool",
        "arguments": arguments,
    }


def read_arguments(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call; those that are no object are its `input`."""
    try:
        found = json.loads(arguments)
    except ValueError:
        found = arguments
    return found if isinstance(found, dict) else {"input": found}


def make_question(calls: Sequence[dict[str, Any]]) -> FormQuestion:
    """Return the question whether calls may be made."""
    fields = [ask_approval(call["id"], call["tool"], call["arguments"]) for call in calls]
    return FormQuestion(fields, {"calls": list(calls)})
