"""Calls of tools that need approval as a question to the client, and the client's answer as decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents.items import ToolApprovalItem

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.frameworks.approvals import NO, YES, UnreadableAnswer, format_call, read_members
from a2a_tasks.protocol.values import UNSET

__all__ = ["Decision", "ask", "describe", "read_answer"]

#: The decision about a call, and the words for the model if it is no.
Decision = tuple[bool, str]
KEYS = {"approved", "message"}


def describe(item: ToolApprovalItem) -> dict[str, Any]:
    """Return a call as programs read it."""
    try:
        arguments = json.loads(item.arguments or "{}")
    except ValueError:
        arguments = item.arguments
    return {"id": item.call_id, "tool": item.qualified_name, "arguments": arguments}


def ask(turn: Turn, approvals: Sequence[dict[str, Any]], fault: str = "") -> StatusUpdate:
    """Ask the client about calls; `fault` is the mistake in the answer before."""
    questions = [f"May I call {_format(call)}?" for call in approvals]
    text = " ".join(filter(None, [fault, "\n".join(questions), "Please answer yes or no."]))
    return turn.ask(text, data({"approvals": list(approvals)}))


def _format(call: dict[str, Any]) -> str:
    arguments = call["arguments"]
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    return format_call(call["tool"] or "a tool", given)


def read_answer(turn: Turn, approvals: Sequence[dict[str, Any]]) -> dict[str, Decision]:
    """Return the decisions in the message of a turn, by the ids of the calls. Raises UnreadableAnswer.

    A data part is `{"approvals": {id: true | false | {"approved": …, "message": …}}}`. A text answers for all calls.
    """
    ids = {call["id"] for call in approvals}
    answers = [part.data for part in turn.parts if part.data is not UNSET]
    if not answers:
        return dict.fromkeys(ids, _read_text(turn.text.strip()))
    answer = answers[0]
    if not isinstance(answer, dict) or not answer.keys() <= {"approvals"}:
        raise UnreadableAnswer("The data must be an object with approvals.")
    given = read_members("approvals", answer, ids)
    return {key: _read_decision(key, value) for key, value in given.items()}


def _read_decision(key: str, value: Any) -> Decision:
    given = {"approved": value} if isinstance(value, bool) else value
    where = f"approvals.{key}"
    if not isinstance(given, dict) or not isinstance(given.get("approved"), bool):
        raise UnreadableAnswer(f"{where} must be true, false, or an object with approved.")
    if unknown := given.keys() - KEYS:
        raise UnreadableAnswer(f"{where}.{min(unknown)} is unknown.")
    message = given.get("message", "")
    if not isinstance(message, str):
        raise UnreadableAnswer(f"{where}.message must be a text.")
    return given["approved"], message


def _read_text(text: str) -> Decision:
    word = text.split(maxsplit=1)[0].strip(",.;:!").lower() if text else ""
    if word not in YES | NO:
        raise UnreadableAnswer("I did not understand the answer.")
    # the words after the no are the reason, which the model reads
    return word in YES, text if word in NO and len(text.split()) > 1 else ""
