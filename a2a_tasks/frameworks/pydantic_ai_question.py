"""Deferred tools of pydantic-ai as a question to the client, and the client's answer as their results.

The question has a text for people and a data part for programs; the answer may be either. A typed form of the host can
take the place of `ask` and `read_answer`; the call sees only these two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ToolCallPart

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.frameworks.approvals import NO, YES, UnfitAnswer, format_call, read_members
from a2a_tasks.protocol.values import UNSET

__all__ = ["ask", "read_answer"]

APPROVAL_KEYS = {"approved", "arguments", "message"}


def ask(turn: Turn, deferred: DeferredToolRequests, fault: str = "") -> StatusUpdate:
    """Ask the client about deferred calls of tools; `fault` is the mistake in the answer before."""
    questions = [f"May I call {_format(call)}?" for call in deferred.approvals]
    questions += [f"What is the result of {_format(call)}?" for call in deferred.calls]
    hint = "Please answer yes or no." if deferred.approvals else ""
    text = " ".join(filter(None, [fault, "\n".join(questions), hint]))
    described = {
        "approvals": [_describe(call, deferred) for call in deferred.approvals],
        "calls": [_describe(call, deferred) for call in deferred.calls],
    }
    return turn.ask(text, data(described))


def _format(call: ToolCallPart) -> str:
    return format_call(call.tool_name, _arguments(call))


def _arguments(call: ToolCallPart) -> Mapping[str, Any]:
    found: Mapping[str, Any] = call.args_as_dict()
    return found


def _describe(call: ToolCallPart, deferred: DeferredToolRequests) -> dict[str, Any]:
    described = {"id": call.tool_call_id, "tool": call.tool_name, "arguments": _arguments(call)}
    metadata = deferred.metadata.get(call.tool_call_id)
    return {**described, "metadata": metadata} if metadata else described


def read_answer(turn: Turn, deferred: DeferredToolRequests) -> DeferredToolResults:
    """Return the results that the message of a turn gives. Raises UnfitAnswer.

    A data part is `{"approvals": {id: true | false | {"approved": …, "arguments": …, "message": …}}, "calls": {id:
    result}}`. A text answers all approvals, or the only call.
    """
    answers = [part.data for part in turn.parts if part.data is not UNSET]
    if not answers:
        return _read_text(turn.text.strip(), deferred)
    answer = answers[0]
    if not isinstance(answer, dict) or not answer.keys() <= {"approvals", "calls"}:
        raise UnfitAnswer("The data must be an object with approvals, calls or both.")
    approvals = read_members("approvals", answer, _ids(deferred.approvals))
    calls = read_members("calls", answer, _ids(deferred.calls))
    return deferred.build_results(
        approvals={key: _read_approval(key, value) for key, value in approvals.items()}, calls=calls
    )


def _ids(calls: list[ToolCallPart]) -> set[str]:
    return {call.tool_call_id for call in calls}


def _read_approval(key: str, value: Any) -> ToolApproved | ToolDenied:
    given = {"approved": value} if isinstance(value, bool) else value
    where = f"approvals.{key}"
    if not isinstance(given, dict) or not isinstance(given.get("approved"), bool):
        raise UnfitAnswer(f"{where} must be true, false, or an object with approved.")
    if unknown := given.keys() - APPROVAL_KEYS:
        raise UnfitAnswer(f"{where}.{min(unknown)} is unknown.")
    arguments, message = given.get("arguments"), given.get("message", "")
    if arguments is not None and not isinstance(arguments, dict):
        raise UnfitAnswer(f"{where}.arguments must be an object.")
    if not isinstance(message, str):
        raise UnfitAnswer(f"{where}.message must be a text.")
    if given["approved"]:
        return ToolApproved(override_args=arguments)
    return ToolDenied(message) if message else ToolDenied()


def _read_text(text: str, deferred: DeferredToolRequests) -> DeferredToolResults:
    if deferred.calls:
        if deferred.approvals or len(deferred.calls) > 1:
            raise UnfitAnswer(
                "There are several questions: please answer each by its id, in a data part."
            )
        if not text:
            raise UnfitAnswer("The answer is empty.")
        return deferred.build_results(calls={deferred.calls[0].tool_call_id: text})
    word = text.split(maxsplit=1)[0].strip(",.;:!").lower() if text else ""
    if word not in YES | NO:
        raise UnfitAnswer("I did not understand the answer.")
    ids = [call.tool_call_id for call in deferred.approvals]
    if word in YES:
        return deferred.build_results(approvals=dict.fromkeys(ids, True))
    # the words after the no are the reason, which the model reads
    denied = ToolDenied(text) if len(text.split()) > 1 else ToolDenied()
    return deferred.build_results(approvals=dict.fromkeys(ids, denied))
