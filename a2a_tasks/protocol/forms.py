"""Questions with a form: the JSON Schema that describes the answer, and the answer as an object that fits it.

The question has a data part `{"form": schema}` and names FORM among the extensions of its message. The answer is a data
part; a text is converted if the form has one property of a simple type.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.soundness import check_storable
from a2a_tasks.protocol.values import UNSET, Message, Part

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["FORM", "UnfitAnswer", "find_fault", "find_form", "read_answer", "type_of"]

FORM = "urn:a2a-host:extensions:form:1"
MAX_BYTES = 64 * 1024
#: Most faults of an answer that are told, and most characters of one.
MAX_FAULTS, MAX_TEXT = 10, 300
YES = frozenset({"yes", "y", "ok", "okay", "approve", "approved", "allow", "true"})
NO = frozenset({"no", "n", "deny", "denied", "reject", "false"})


class Unchecked(Exception):
    """A value that cannot be compared with its schema."""


class UnfitAnswer(Exception):
    """An answer that does not fit its form; `faults` are pairs of a field's path and its mistake."""

    def __init__(self, *faults: tuple[str, str]) -> None:
        super().__init__("; ".join(" ".join(fault) for fault in faults))
        self.faults = faults


def find_fault(schema: Any) -> str:
    """Return why a schema cannot be a form; empty = it can."""
    from a2a_tasks.protocol import schemas  # noqa: PLC0415 - jsonschema has 5 MiB, and few agents have forms

    try:
        check_storable("form", schema)
        size = len(write(schema))
        if size > MAX_BYTES:
            return f"it has {size} bytes, and may have {MAX_BYTES}"
        if flaw := schemas.find_flaw(schema):
            return flaw
        if not isinstance(schema, dict) or schema.get("type") != "object":
            return 'its type must be "object"'
        properties = schema.get("properties")
        if not properties or not all(isinstance(one, dict) for one in properties.values()):
            return "it needs properties, each with a schema"
        # With a schema that refers to itself without end, or to something that is not there, no answer would fit.
        _list_faults(schema, dict.fromkeys(properties, ""), schemas.MAX_SCHEMA_STEPS)
    except (TypeError, RecursionError, schemas.TooManySteps, Unchecked) as fault:
        return str(fault)[:MAX_TEXT]
    return ""


def _list_faults(
    schema: Mapping[str, Any], value: Any, steps: int | None = None
) -> list[ValidationError]:
    """Return the first faults of a value. Raises Unchecked."""
    from a2a_tasks.protocol import schemas  # noqa: PLC0415 - see `find_fault`

    try:
        return schemas.list_faults(schema, value, MAX_FAULTS, steps=steps or schemas.MAX_STEPS)
    except schemas.TooManySteps as fault:
        raise Unchecked(str(fault)) from None
    except Exception as fault:  # noqa: BLE001 - a reference may lead to anything
        raise Unchecked(f"{type(fault).__name__}: {fault}"[:MAX_TEXT]) from None


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a property, the first of several; empty = any."""
    found = schema.get("type", "")
    return str(found[0] if isinstance(found, list) and found else found)


def find_form(message: Message) -> dict[str, Any] | None:
    """Return the schema in an agent's question; None = it has none."""
    if FORM in message.extensions:
        for part in message.parts:
            if isinstance(part.data, dict) and isinstance(part.data.get("form"), dict):
                return dict(part.data["form"])
    return None


def read_answer(form: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """Return the answer in the parts of a message: its first data part, or its text. Raises UnfitAnswer."""
    found = [(number, part) for number, part in enumerate(parts) if part.data is not UNSET]
    if not found:
        return _convert(form, "\n".join(p.text for p in parts if isinstance(p.text, str)))
    number, part = found[0]
    _check(form, part.data, f"message.parts[{number}].data")
    return dict(part.data)


def _convert(form: Mapping[str, Any], text: str) -> dict[str, Any]:
    properties, text = form["properties"], text.strip()
    ((name, schema),) = properties.items() if len(properties) == 1 else [("", {"type": "object"})]
    value: Any = text
    match type_of(schema):
        case "":  # such as int | None
            with contextlib.suppress(msgspec.MsgspecError, RecursionError, Unchecked):
                if _list_faults(form, {name: text}):
                    value = msgspec.json.decode(text)
        case "string":
            pass
        case "boolean":
            word = text.split(maxsplit=1)[0].strip(",.;:!").lower() if text else ""
            if word not in YES | NO:
                raise UnfitAnswer(("message.parts", f"must be yes or no, for {name}"))
            value = word in YES
        case "integer" | "number":
            try:
                value = int(text) if text.lstrip("+-").isdecimal() else float(text)
            except ValueError:
                value = math.nan
            if isinstance(value, float) and not math.isfinite(value):
                raise UnfitAnswer(("message.parts", f"must be a number, for {name}"))
        case _:
            needed = ", ".join(properties)[:MAX_TEXT]
            raise UnfitAnswer(("message.parts", f"must have a data part with {needed}"))
    _check(form, {name: value}, "message.parts")
    return {name: value}


def _check(form: Mapping[str, Any], answer: Any, path: str) -> None:
    try:
        faults = _list_faults(form, answer)
    except Unchecked as fault:
        raise UnfitAnswer((path, f"cannot be checked: {fault}")) from None
    if faults:
        told = dict.fromkeys(one for fault in faults for one in _tell(fault, path))
        raise UnfitAnswer(*list(told)[:MAX_FAULTS])


def _tell(fault: ValidationError, path: str) -> list[tuple[str, str]]:
    where = ".".join([path, *map(str, fault.absolute_path)])
    if fault.validator == "required":
        needed, given = (
            cast("list[str]", fault.validator_value),
            cast("dict[str, Any]", fault.instance),
        )
        missing = [name for name in needed if name not in given]
        return [(f"{where}.{name}", "is missing") for name in missing]
    return [(where, fault.message)]
