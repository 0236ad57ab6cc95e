"""Calls of gRPC at the limits: metadata of odd texts, messages of odd values, and what is no message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from a2a_grpc.binding.schema import message_class
from lab.oddinput.doors import BODY, FILLS, PLAIN, Odd

__all__ = ["ask_call", "list_calls", "list_metadata"]

#: Characters of a value of the metadata (its limit is 16 KiB), and values of a message; the host takes 100,000.
LENGTH, VALUES = 12_000, 99_000
SEND, GET = "/lf.a2a.v1.A2AService/SendMessage", "/lf.a2a.v1.A2AService/GetTask"
OLD = "/a2a.v1.A2AService/SendMessage"
NAMES = (
    *("authorization", "x-api-key", "a2a-version", "a2a-extensions", "idempotency-key"),
    *("traceparent", "tracestate", "x-forwarded-for", "accept-language", "something", "odd-bin"),
)
#: Seconds until a call is given up.
PATIENCE = 4.0


def ask_call(channel: grpc.Channel, odd: Odd) -> str:
    """Make a call; return the name of its status."""
    call: Any = channel.unary_unary(odd.method)
    try:
        call(odd.request, metadata=odd.metadata, timeout=PATIENCE)
    except grpc.RpcError as fault:
        code: str = fault.code().name
        return f"{code} {fault.details()}"[:100]
    return "OK"


def list_metadata() -> Iterator[Odd]:
    """Yield calls with each text as the value of each name, and with many names."""
    body = message_class("lf.a2a.v1.GetTaskRequest")(id="x").SerializeToString()
    for name in NAMES:
        is_binary = name.endswith("-bin")
        for fill in (
            PLAIN,
            *(one for one in FILLS if is_binary or (one.isascii() and one.strip())),
        ):
            text = (fill * LENGTH)[:LENGTH].strip()
            value = text.encode()[:LENGTH] if is_binary else text.replace("\t", " ")
            yield Odd(f"gRPC {name}", fill, body, GET, ((name, value),))
    many = tuple((f"n{n}", "x") for n in range(300))
    same = tuple(("same", "x") for _ in range(300))
    for kind, metadata in (("plain", ()), ("many names", many), ("the same name", same)):
        yield Odd("gRPC metadata", PLAIN if kind == "plain" else kind, body, GET, metadata)


def list_calls() -> Iterator[Odd]:
    """Yield messages at the limits, those of plain letters before the odd ones of their door."""
    for method, name in ((SEND, "lf.a2a.v1"), (OLD, "a2a.v1")):
        for door, bodies in (("text", _list_texts), ("data", _list_data), ("others", _list_others)):
            for kind, body in bodies(name):
                yield Odd(f"gRPC {name} {door}", kind, body, method)
    for kind, raw in _list_raw():
        yield Odd("gRPC bytes", kind, raw, SEND)


def _make(package: str, parts: list[dict[str, Any]], **said: Any) -> bytes:
    """Write a message of a package."""
    is_old = package == "a2a.v1"
    kind = message_class(f"{package}.SendMessageRequest")
    message = {"message_id": "m", "role": 1, "content" if is_old else "parts": parts, **said}
    made = kind(**{"request" if is_old else "message": message})
    return bytes(made.SerializeToString())


def _data(package: str, value: Value) -> bytes:
    if package != "a2a.v1":
        return _make(package, [{"data": value}])
    return _make(package, [{"data": {"data": Struct(fields={"x": value})}}])


def _list_texts(package: str) -> Iterator[tuple[str, bytes]]:
    for fill in (PLAIN, *FILLS[::4]):
        yield fill, _make(package, [{"text": "echo " + fill * (BODY // len(fill.encode()))}])


def _list_data(package: str) -> Iterator[tuple[str, bytes]]:
    one = Value(number_value=1)
    deep = Value(number_value=1)
    for _ in range(45):
        deep = Value(list_value=ListValue(values=[deep]))
    values = {
        PLAIN: Value(string_value=PLAIN * BODY),
        "numbers": _listed([one] * VALUES),
        "floats": _listed([Value(number_value=0.1)] * VALUES),
        "texts": _listed([Value(string_value="x")] * VALUES),
        "keys": _keyed({f"k{n}": one for n in range(VALUES)}),
        "long keys": _keyed({f"{n:038d}": one for n in range(VALUES // 2)}),
        "empty objects": _listed([_keyed({})] * (VALUES // 2)),
        "objects": _listed([_keyed({"a": one})] * (VALUES // 2)),
        "nothing": _listed([Value()] * VALUES),
        "deep": deep,
        "many deep": _listed([deep] * 1900),
        "too many": _listed([Value(bool_value=True)] * 900_000),
    }
    for kind, value in values.items():
        yield kind, _data(package, value)


def _listed(values: list[Value]) -> Value:
    return Value(list_value=ListValue(values=values))


def _keyed(fields: dict[str, Value]) -> Value:
    return Value(struct_value=Struct(fields=fields))


def _list_others(package: str) -> Iterator[tuple[str, bytes]]:
    text = [{"text": "echo x"}]
    yield PLAIN, _make(package, [{"text": "echo " + PLAIN * BODY}])
    yield "parts", _make(package, [{"text": ""}] * 1_000_000)
    yield "extensions", _make(package, text, extensions=["urn:x"] * VALUES)
    for name in ("message_id", "task_id", "context_id"):
        for fill in (PLAIN, "/", "%", "ä"):
            said = {name: (fill * (BODY // 2))[: BODY // 2]}
            yield f"{name} {fill}", _make(package, text, **said)
    metadata = Struct(fields={f"k{n}": Value(string_value="x") for n in range(VALUES)})
    yield "metadata", _make(package, text, metadata=metadata)


def _list_raw() -> Iterator[tuple[str, bytes]]:
    """Yield bytes that are no message, and fields that nobody knows."""
    yield PLAIN, _make("lf.a2a.v1", [{"text": "echo " + PLAIN * BODY}])
    units = {
        "zeros": b"\0",
        "ones": b"\xff",
        "empty messages": b"\x0a\x00",
        "unknown numbers": b"\xf8\x7f\x01",
        "unknown texts": b"\xfa\x7f\x01x",
        "groups": b"\x0b",
        "groups and ends": b"\x0b\x0c",
        "the same field": b"\x0a\x03\x0a\x01m",
    }
    for kind, unit in units.items():
        yield kind, (unit * (BODY // len(unit)))
