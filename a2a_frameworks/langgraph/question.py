"""Interrupts of a graph as a question. Any value answers one, unless it has a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from a2a_frameworks.langgraph.messages import make_json
from a2a_frameworks.shared.questions import FormQuestion, ask_value

__all__ = ["describe", "make_question"]


def describe(interrupts: Sequence[Interrupt]) -> list[dict[str, Any]]:
    """Return interrupts as JSON, which is kept until they are answered."""
    return [
        {"id": one.id, "value": make_json(one.value)}
        | ({"schema": make_json(one.response_schema)} if one.response_schema else {})
        for one in interrupts
    ]


def make_question(interrupts: Sequence[Mapping[str, Any]]) -> FormQuestion:
    """Return the question that interrupts ask."""
    about = [{"id": one["id"], "value": one["value"]} for one in interrupts]
    fields = [ask_value(one["id"], one["value"], one.get("schema")) for one in interrupts]
    return FormQuestion(fields, {"interrupts": about})
