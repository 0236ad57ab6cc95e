"""Interrupts of a graph as a question to the client, and the client's answer as their values.

The question has a text for people and a data part for programs; the answer may be either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.frameworks.approvals import UnreadableAnswer
from a2a_tasks.frameworks.langgraph_messages import make_json
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import UNSET

__all__ = ["UnreadableAnswer", "ask", "describe", "read_answer"]

#: Members of an interrupt's value that people can read, the best first.
TEXTS = ("question", "message", "prompt", "description")


def describe(interrupts: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """Return interrupts as JSON, which is kept until they are answered."""
    return [
        {"id": one.id, "value": make_json(one.value)}
        | ({"schema": make_json(one.response_schema)} if one.response_schema else {})
        for one in interrupts
    ]


def ask(turn: Turn, interrupts: Sequence[Mapping[str, Any]], fault: str = "") -> StatusUpdate:
    """Ask the client about interrupts; `fault` is the mistake in the answer before."""
    questions = "\n".join(_format(one["value"]) for one in interrupts)
    text = " ".join(filter(None, [fault, questions]))
    return turn.ask(text, data({"interrupts": list(interrupts)}))


def _format(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[key] for key in TEXTS if isinstance(value.get(key), str)), value)
    return value if isinstance(value, str) else write(value).decode()


def read_answer(turn: Turn, interrupts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that the message of a turn gives, by the id of the interrupt. Raises UnreadableAnswer.

    A data part is `{"interrupts": {id: value}}`. A text answers the only interrupt.
    """
    asked = [one["id"] for one in interrupts]
    answers = [part.data for part in turn.parts if part.data is not UNSET]
    if not answers:
        if len(asked) > 1:
            raise UnreadableAnswer(
                "There are several questions: please answer each by its id, in a data part."
            )
        if not turn.text.strip():
            raise UnreadableAnswer("The answer is empty.")
        return {asked[0]: turn.text}
    answer = answers[0]
    if not isinstance(answer, dict) or answer.keys() != {"interrupts"}:
        raise UnreadableAnswer("The data must be an object with interrupts.")
    found = answer["interrupts"]
    if not isinstance(found, dict):
        raise UnreadableAnswer("interrupts must be an object, with an answer for each id.")
    if unknown := found.keys() - set(asked):
        raise UnreadableAnswer(f"interrupts.{min(unknown)} was not asked.")
    if missing := set(asked) - found.keys():
        raise UnreadableAnswer(f"interrupts.{min(missing)} is missing.")
    return found
