"""Conversion of protobuf messages to the trees that dialects read, and of the JSON that dialects write to messages.

Each field is converted by ProtoJSON (camelCase names, base64, RFC 3339), with code compiled once per message type:
protobuf's own `json_format` takes some thirty times as long. Enums are read by their numbers, which dialects accept.
"""

from __future__ import annotations

import base64
import datetime
import functools
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.jsontext import MAX_VALUES

__all__ = ["Tree", "reader", "writer"]

Tree = dict[str, Any]
Convert = Callable[[Any], Any]


class _Limits(threading.local):
    """The limits of the present message."""

    #: The number of Struct values still allowed: the limit is that of a JSON document.
    values: float = MAX_VALUES
    #: The number of parts allowed in one list.
    parts: float = math.inf


_limits = _Limits()
#: Integers in JSON have at most 64 bits; larger values remain doubles.
_INT_MIN, _INT_MAX = -(2**63), 2**64
_STRUCT, _VALUE, _TIMESTAMP = (
    f"google.protobuf.{name}" for name in ("Struct", "Value", "Timestamp")
)


def _below(name: str, fault: InvalidParams) -> InvalidParams:
    """Return the fault as seen from one level higher."""
    return InvalidParams(
        violations=[
            (f"{name}{'' if not path or path.startswith('[') else '.'}{path}", text)
            for path, text in fault.violations
        ]
    )


# --- reading ----------------------------------------------------------------------------------------------------------


def reader(kind: type[Message], *, limited: bool = True) -> Callable[[Message], Tree]:
    """Return the reader of messages of a class, far slower than parsing. It raises InvalidParams for values JSON lacks.

    `limited`: it also raises for more parts and values than a client may send.
    """
    read = _reader(kind.DESCRIPTOR)

    def read_counted(message: Message) -> Tree:
        _limits.values = MAX_VALUES if limited else math.inf
        _limits.parts = int(conf.MAX_PARTS) if limited else math.inf
        tree: Tree = read(message)
        return tree

    return read_counted


@functools.cache
def _reader(descriptor: Descriptor) -> Convert:
    fields = {field.number: (field.json_name, _make_reader(field)) for field in descriptor.fields}

    def read(message: Message) -> Tree:
        tree: Tree = {}
        for field, value in message.ListFields():
            name, convert = fields[field.number]
            try:
                tree[name] = value if convert is None else convert(value)
            except InvalidParams as fault:
                raise _below(name, fault) from None
        return tree

    return read


def _make_reader(field: FieldDescriptor) -> Convert | None:
    one = _make_single_reader(field)
    if not field.is_repeated:
        return one
    if one is None:
        return list
    parts = field.message_type is not None and field.message_type.name == "Part"
    return functools.partial(_parts if parts else _each, one)


def _parts(convert: Convert, values: Sequence[Any]) -> list[Any]:
    """Convert parts, unless there are too many: a few bytes hold a million parts, whose trees would take gigabytes."""
    if len(values) > _limits.parts:
        raise InvalidParams.field("", f"must have at most {_limits.parts} parts")
    return _each(convert, values)


def _each(convert: Convert, values: Iterable[Any]) -> list[Any]:
    found = []
    for index, value in enumerate(values):
        try:
            found.append(convert(value))
        except InvalidParams as fault:
            raise _below(f"[{index}]", fault) from None
    return found


def _make_single_reader(field: FieldDescriptor) -> Convert | None:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    if field.message_type is None:
        return None
    special: dict[str, Convert] = {_STRUCT: _struct, _VALUE: _value, _TIMESTAMP: _moment}
    return special.get(field.message_type.full_name) or _reader(field.message_type)


def _moment(timestamp: Any) -> str:
    try:
        moment: datetime.datetime = timestamp.ToDatetime(datetime.UTC)
    except (ValueError, OverflowError):
        raise InvalidParams.field("", "must be a moment from year 1 to 9999") from None
    return moment.isoformat()


def _struct(struct: Any, depth: int = 1) -> Tree:
    tree = {}
    for name, value in struct.fields.items():
        try:
            tree[name] = _value(value, depth + 1)
        except InvalidParams as fault:
            raise _below(name, fault) from None
    return tree


def _value(value: Any, depth: int = 1) -> Any:
    _limits.values -= 1
    if _limits.values < 0:
        raise InvalidParams.field("", f"is beyond {MAX_VALUES} values")
    if depth > int(conf.MAX_JSON_DEPTH):
        raise InvalidParams.field("", f"is nested deeper than {conf.MAX_JSON_DEPTH} levels")
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _struct(value.struct_value, depth)
    if kind == "list_value":
        return _each(lambda item: _value(item, depth + 1), value.list_value.values)
    if kind == "number_value":
        return _number(value.number_value)
    if kind is None:
        raise InvalidParams.field("", "must hold a value")
    return None if kind == "null_value" else getattr(value, kind)


def _number(number: float) -> float | int:
    """Return a JSON number; whole ones become integers, as they were before they were sent as doubles."""
    if not math.isfinite(number):
        raise InvalidParams.field("", "must be a finite number")
    return int(number) if number.is_integer() and _INT_MIN <= number < _INT_MAX else number


# --- writing ----------------------------------------------------------------------------------------------------------


def writer(kind: type[Message]) -> Callable[[Mapping[str, Any]], Tree]:
    """Return a function from JSON to the arguments of a message's class. Members without a field are left out."""
    return _writer(kind.DESCRIPTOR)


@functools.cache
def _writer(descriptor: Descriptor) -> Callable[[Mapping[str, Any]], Tree]:
    fields = {field.json_name: (field.name, _make_writer(field)) for field in descriptor.fields}

    def write(tree: Mapping[str, Any]) -> Tree:
        found: Tree = {}
        for key, value in tree.items():
            if key in fields:
                name, convert = fields[key]
                found[name] = value if convert is None else convert(value)
        return found

    return write


def _make_writer(field: FieldDescriptor) -> Convert | None:
    one = _make_single_writer(field)
    if one is None or not field.is_repeated:
        return one
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = _make_single_writer(field.message_type.fields_by_name["value"])
        return None if of_value is None else lambda tree: {k: of_value(v) for k, v in tree.items()}
    return lambda items: [one(item) for item in items]


def _make_single_writer(field: FieldDescriptor) -> Convert | None:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64decode
    if field.message_type is None or field.message_type.full_name == _STRUCT:
        return None  # protobuf accepts objects for Structs
    special: dict[str, Convert] = {
        _VALUE: _write_value,
        _TIMESTAMP: _write_moment,
    }
    return special.get(field.message_type.full_name) or _writer(field.message_type)


def _write_moment(text: str) -> Tree:
    moment = datetime.datetime.fromisoformat(text)
    return {"seconds": int(moment.timestamp() // 1), "nanos": moment.microsecond * 1000}


def _write_value(value: Any) -> Tree:
    match value:
        case None:
            return {"null_value": 0}
        case bool():
            return {"bool_value": value}
        case str():
            return {"string_value": value}
        case dict():
            return {"struct_value": value}
        case list():
            return {"list_value": value}
    return {"number_value": value}
