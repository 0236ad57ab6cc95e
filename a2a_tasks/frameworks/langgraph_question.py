"""Interrupts of a graph as a question. Any value answers one, unless it has a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from a2a_tasks.frameworks.langgraph_messages import make_json
from a2a_tasks.frameworks.questions import MAX_TITLE_LENGTH, Field, FormQuestion
from a2a_tasks.protocol.jsontext import write

__all__ = ["describe", "make_question"]

#: Members of an interrupt's value that people can read, the best first.
TEXTS = ("question", "message", "prompt", "description")


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
    return FormQuestion([_make_field(one) for one in interrupts], {"interrupts": about})


def _make_field(interrupt: Mapping[str, Any]) -> Field:
    id_, text = interrupt["id"], _format(interrupt["value"])
    schema = interrupt.get("schema", {"minLength": 1})  # a text must say something
    # the base of references within the schema
    base = {"$id": f"urn:interrupt:{id_}"} if "$defs" in schema else {}
    return Field(id_, text, {**base, **schema, "title": text[:MAX_TITLE_LENGTH]})


def _format(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[key] for key in TEXTS if isinstance(value.get(key), str)), value)
    return value if isinstance(value, str) else write(value).decode()
