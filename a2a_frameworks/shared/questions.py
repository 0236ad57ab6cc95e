"""Questions of agents of frameworks: one form with a field for each call or interrupt, and the answers to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from a2a_tasks.agents import Turn, data
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.protocol.forms import type_of
from a2a_tasks.protocol.jsontext import write

__all__ = [
    "Decision",
    "Field",
    "FormQuestion",
    "ask_approval",
    "ask_result",
    "ask_value",
    "format_call",
    "read_decision",
]

#: Longest title of a field.
MAX_TITLE_LENGTH = 100
#: Members of an object that people can read, the best first.
TEXTS = ("question", "message", "prompt", "description")


class Field(NamedTuple):
    """One thing that is asked: its id, the text for people, and the schema of the answer."""

    id: str
    text: str
    schema: dict[str, Any]


class Decision(NamedTuple):
    """The decision about a call of a tool: yes or no, the reason for the model, and arguments that replace the model's."""

    approved: bool
    message: str = ""
    arguments: dict[str, Any] | None = None


@dataclass(frozen=True)
class FormQuestion:
    """The fields of a form, and what they are about, for programs."""

    fields: Sequence[Field]
    about: Mapping[str, Any]

    def ask(self, turn: Turn) -> StatusUpdate:
        """Ask the client: a text for people, a data part for programs, and a form with a property for each field."""
        texts = "\n".join(field.text for field in self.fields)
        is_choice = len(self.fields) == 1 and type_of(self.fields[0].schema) == "boolean"
        form = {
            "type": "object",
            "properties": {field.id: field.schema for field in self.fields},
            "required": [field.id for field in self.fields],
            "additionalProperties": False,
        }
        hint = " Please answer yes or no." if is_choice else ""
        return turn.ask(f"{texts}{hint}", data(dict(self.about)), form=form)


def ask_approval(
    id_: str, tool: str, arguments: Mapping[str, Any], *, may_change: bool = False
) -> Field:
    """Return the field for the approval of a call; `may_change`: the answer may have other arguments."""
    members: dict[str, Any] = {"approved": {"type": "boolean"}, "message": {"type": "string"}}
    if may_change:
        members["arguments"] = {"type": "object"}
    schema = {
        "title": f"Call {tool}"[:MAX_TITLE_LENGTH],
        "type": ["boolean", "object"],
        "properties": members,
        "required": ["approved"],
        "additionalProperties": False,
    }
    return Field(id_, f"May I call {format_call(tool, arguments)}?", schema)


def ask_result(id_: str, tool: str, arguments: Mapping[str, Any]) -> Field:
    """Return the field for the result of a call that the client makes itself."""
    text = f"Please run {format_call(tool, arguments)} and answer with its result."
    return Field(id_, text, {"title": f"Result of {tool}"[:MAX_TITLE_LENGTH]})


def ask_value(id_: str, value: Any, schema: Mapping[str, Any] | None = None) -> Field:
    """Return the field for what an agent wants to know, in its own words; without a schema, any value answers it."""
    text = value
    if isinstance(value, dict):
        text = next((value[key] for key in TEXTS if isinstance(value.get(key), str)), value)
    if not isinstance(text, str):
        text = write(text).decode()
    wanted = schema or {"minLength": 1}  # a text must say something
    place = id_.replace("~", "~0").replace("/", "~1")  # in a pointer (RFC 6901)
    moved = _move_references(wanted, f"#/properties/{quote(place, safe='')}")
    return Field(id_, text, {**moved, "title": text[:MAX_TITLE_LENGTH]})


def _move_references(schema: Any, place: str) -> Any:
    """Return a schema that stands at a place of another one, with its references to itself."""
    if isinstance(schema, list):
        return [_move_references(one, place) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: f"{place}{one[1:]}"
        if key == "$ref" and isinstance(one, str) and one.startswith("#")
        else _move_references(one, place)
        for key, one in schema.items()
    }


def read_decision(turn: Turn, value: Any) -> Decision:
    """Return the decision in a field of an answer. A text of several words is also the reason, such as `no, too late`."""
    given = value if isinstance(value, dict) else {"approved": value}
    reason = turn.text.strip() if len(turn.text.split()) > 1 else ""
    return Decision(given["approved"], given.get("message", reason), given.get("arguments"))


def format_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as people read it: `pay(amount=7)`."""
    given = (f"{key}={json.dumps(v, ensure_ascii=False)}" for key, v in arguments.items())
    return f"{name}({', '.join(given)})"
