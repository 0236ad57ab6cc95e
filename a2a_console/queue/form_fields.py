"""The fields of a question's form on a page, and the answer in the values that people give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from a2a_tasks.protocol.forms import find_form, type_of
from a2a_tasks.protocol.values import Message

__all__ = ["FormField", "list_fields", "read_fields", "read_form"]

#: Length of texts from which a field has several lines.
LONG = 200
YES_NO = ("yes", "no")
_decode = msgspec.json.Decoder(Message).decode


@dataclass(frozen=True, kw_only=True)
class FormField:
    """An input for one property."""

    #: Its name in the posted values.
    name: str
    label: str
    help: str
    #: "choice", "yes-no", "checkbox", "number", "text", "long" or "json".
    kind: str
    required: bool
    options: tuple[str, ...] = ()
    #: The posted value, or the default.
    value: str = ""


def read_form(question: str) -> dict[str, Any] | None:
    """Return the form in the JSON of a status message; None = it has none."""
    return find_form(_decode(question)) if question else None


def list_fields(form: Mapping[str, Any], given: Mapping[str, str]) -> list[FormField]:
    """Return a field for each property, with the posted values if there are any."""
    fields = []
    for number, (key, schema) in enumerate(form["properties"].items()):
        name, default = f"field-{number}", schema.get("default", "")
        standard = default if isinstance(default, str) else msgspec.json.encode(default).decode()
        required = key in form.get("required", ())
        kind = _find_kind(schema, required=required)
        fields.append(
            FormField(
                name=name,
                label=str(schema.get("title", key)),
                help=str(schema.get("description", "")),
                kind=kind,
                required=required and kind != "checkbox",
                options=YES_NO
                if kind == "yes-no"
                else tuple(schema["enum"] if kind == "choice" else ()),
                value=given.get(name, "") if "event" in given else standard,
            )
        )
    return fields


def _find_kind(schema: Mapping[str, Any], *, required: bool) -> str:
    choices = schema.get("enum")
    if choices:
        return "choice" if all(isinstance(one, str) for one in choices) else "json"
    # A required boolean without a default has two buttons: no answer does not mean no.
    boolean = "yes-no" if required and "default" not in schema else "checkbox"
    kinds = {"boolean": boolean, "integer": "number", "number": "number"}
    if type_of(schema) != "string":
        return kinds.get(type_of(schema), "json")
    is_long = schema.get("format") == "textarea" or schema.get("maxLength", 0) > LONG
    return "long" if is_long else "text"


def read_fields(form: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer in posted values. Text that is no JSON stays text; the form may refuse it."""
    answer: dict[str, Any] = {}
    for key, field in zip(form["properties"], list_fields(form, given), strict=True):
        text = given.get(field.name, "")
        if field.kind == "checkbox":
            answer[key] = text == "on"
        elif field.kind == "yes-no":
            answer |= {key: text == "yes"} if text in YES_NO else {}
        elif text.strip() or key in form.get("required", ()):
            answer[key] = _read(text) if field.kind in {"number", "json"} else text
    return answer


def _read(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text
