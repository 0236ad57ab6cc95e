"""Ways to bend a call over gRPC: its message field by field or byte by byte, its metadata, its path. A number decides which."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct

from a2a_grpc.binding.schema import message_class
from lab.hostile.bending import ODD, SHOWN
from lab.hostile.golden import HOOK
from lab.matrix.asks import HOOK as FOREIGN_HOOK
from lab.matrix.asks import Named, ask
from lab.matrix.rpc_asks import RPC_WIRES, described

__all__ = ["Call", "hostile_call"]

Metadata = tuple[tuple[str, str | bytes], ...]
Known = Callable[[str, random.Random], str]
F = FieldDescriptor


@dataclass(frozen=True)
class Call:
    """A call as it goes over the wire: most have one message."""

    path: str
    metadata: Metadata
    messages: tuple[bytes, ...]
    #: What was done to it.
    bent: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = [message[:400] for message in self.messages[:3]]
        return f"{self.path} {str(self.metadata)[:400]} {len(self.messages)} {shown} {self.bent}"


Bend = Callable[[random.Random, Call], Call]
WORDS = (
    "send", "send", "send", "stream", "stream", "get", "list", "cancel", "subscribe", "create", "read", "configs",
    "delete", "extended", "called card",
)  # fmt: skip
TEXTS = ("echo hi", "ask what", "chunks 3", "fail x", "message hi", "data x", "file x", "reject x")
STRINGS: Sequence[str] = (
    "", " ", "\x00", "a\x00b", "x" * 300, "x" * 70_000, "../../../etc/passwd", "%2e%2e%2f", "%00", "' or '1'='1",
    '"; drop table a2a_tasks_task; --', "\u202e", "\ufeff", "\uffff", "\U0001f600" * 256, "http://169.254.169.254/",
    "file:///etc/passwd", "http://[::1", "http://a b/", "//[", "gopher://127.0.0.1:6379/_x", "http://u:p@127.0.0.1:9/",
    "tasks/", "tasks/x/pushNotificationConfigs/", "tasks//pushNotificationConfigs/x", "tasks/../x", "tasks/a/b/c", "-",
    "{0.__class__}", "%s%n", "${jndi:x}", "<script>alert(1)</script>", "a\r\nset-cookie: a=b", "9" * 5000, "t" * 256,
    "demo", "demo/acme", "nobody/x", "/" * 300, "A" * 7, "====", "eyJhIjoxfQ:1a:xx", "a/b; c=d", "text/plain;;",
)  # fmt: skip
INTEGERS = (0, 1, -1, 7, 99, 2**31 - 1, -(2**31))
LONG_INTEGERS = (*INTEGERS, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
DOUBLES = (
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    5e-324,
    2.0**53 + 2,
    -0.0,
    1e21,
    2.0**63,
    -(2.0**64),
)
BYTES = (b"", b"\xff" * 10, b"\x00", b"x" * 100_000)
#: What stands after a message that is right: fields and wire types nobody knows, groups, lengths that lie.
TAILS = (
    b"\xff\xff\xff\xff\x0f\x01", b"\x00\x00", b"\x0b\x0c", b"\x0b" * 200, b"\x0c", b"\x0f\x00", b"\xfa\x3f\x02hi", b"\x0a\xff\xff\xff\xff\x0f",
    b"\x08" + b"\xff" * 9 + b"\x01", b"\x08" + b"\xff" * 11, b"\x0a\x80", b"\x09\x01", b"\x0d", b"\xc0\x3e\x01" * 1000, b"\x0a\x02\x0a\x00",
)  # fmt: skip
PATHS = (
    "/lf.a2a.v1.A2AService/Nothing", "/lf.a2a.v1.A2AService/getTask", "/lf.a2a.v1.A2AService/", "/lf.a2a.v1.A2AService",
    "/lf.a2a.v2.A2AService/GetTask", "/a2a.v1.A2AService/GetTask/", "/A2AService/GetTask", "/", "//", "/x" * 2000,
    "/a2a.v1.A2AService/__class__", "/a2a.v1.A2AService/..%2fGetTask", "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Nothing", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/agents/demo/a2a/1.0", "/lf.a2a.v1.A2AService/ListTasks", "/a2a.v1.A2AService/GetAgentCard",
)  # fmt: skip
KEYS = (
    "a2a-version", "a2a-extensions", "x-a2a-extensions", "last-event-id", "idempotency-key", "a2a-agent", "authorization", "x-api-key",
    "client-cert", "x-forwarded-for", "forwarded", "cookie", "x-request-id", "traceparent", "accept", "origin", "x-odd", "host",
)  # fmt: skip
#: What metadata over this client cannot have are bytes beyond ASCII; those go over the bare socket.
PLAIN = tuple(text.decode() for text in ODD if all(32 <= byte < 127 for byte in text))
VERSIONS = (
    "",
    "0.1",
    "0.3",
    "1",
    "1.0",
    "1.0.0",
    "2.0",
    "99.9",
    "x",
    "1.0, 0.3",
    "-1",
    "1" * 400,
    "None",
)
AGENTS = (
    "nobody",
    "",
    "demo/",
    "DEMO",
    "../demo",
    "tables",
    "a" * 5000,
    "demo,tables",
    "%64emo",
    "' or 1=1 --",
    "None",
)
_NONE = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0"
_CLAIMS = "eyJzdWIiOiJyb290IiwiYXVkIjoiKiIsImV4cCI6OTk5OTk5OTk5OX0"
#: Attacks on readers of tokens: no algorithm, a secret of the client's, keys it brings along, a path for a key's name.
TOKENS = tuple(
    ("authorization", f"Bearer {token}")
    for token in (
        f"{_NONE}.{_CLAIMS}.", f"{_NONE}.{_CLAIMS}.x", f"eyJhbGciOiJOb05lIn0.{_CLAIMS}.", f"eyJhbGciOiJIUzI1NiJ9.{_CLAIMS}.AAAA",
        f"eyJhbGciOiJSUzI1NiIsImtpZCI6Ii4uLy4uL2V0Yy9wYXNzd2QifQ.{_CLAIMS}.AAAA",
        f"eyJhbGciOiJSUzI1NiIsImprdSI6Imh0dHA6Ly8xMjcuMC4wLjE6OS8ifQ.{_CLAIMS}.AAAA", f"eyJhbGciOiJFUzI1NiJ9.{_CLAIMS}." + "A" * 86,
        "..", "a.b.c.d.e", f"{_NONE}.{'A' * 20_000}.", f"{'e30' * 400}.e30.e30", "e30.e30.e30", ".".join(["W10"] * 3),
    )
)  # fmt: skip
_TEXT = tuple(
    (name.decode(), text.decode()) for name, text in SHOWN if all(32 <= byte < 127 for byte in text)
)
CREDENTIALS = (*_TEXT, *TOKENS, ("authorization", "Bearer x"), ("authorization", "basic"))
#: More than the host takes (`A2A_MAX_BODY_BYTES`).
TOO_LARGE = 5 * 1024 * 1024


# --- the right calls ----------------------------------------------------------------------------------


def _right(chance: random.Random, known: Known) -> Call:
    """A call that is right: any rpc of either package, about something that is there, or nothing."""
    while True:
        wire, word = chance.choice(RPC_WIRES), chance.choice(WORDS)
        named = Named(task=known("task", chance), config="c")
        if word in {"send", "stream", "list"}:
            one = chance.choice(
                ({}, {}, {"context": known("context", chance)}, {"task": named.task})
            )
            named = Named(**one)
        asked = ask(wire, word, named, chance.choice(TEXTS), metadata={"n": 1, "of": [{"a": None}]})
        if asked is not None:
            message = asked.body.replace(FOREIGN_HOOK.encode(), _as_long(HOOK, FOREIGN_HOOK))
            metadata = {"a2a-agent": "demo", **asked.headers}
            return Call(asked.path, tuple(metadata.items()), (message,))


def _as_long(url: str, as_one: str) -> bytes:
    """The URL, as long as another: its length stands before it."""
    return url.encode().ljust(len(as_one), b"x")


# --- fields ----------------------------------------------------------------------------------------------


def _read(call: Call) -> Message:
    """Its message. Raises DecodeError, KeyError."""
    return message_class(described(call.path).input_type.full_name).FromString(call.messages[0])


def _with(call: Call, message: Message) -> Call:
    return replace(call, messages=(message.SerializeToString(),))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _below(message: Message) -> Iterator[Message]:
    """The message and every message in it."""
    yield message
    for field, value in message.ListFields():
        if field.type != F.TYPE_MESSAGE:
            continue
        if _is_map(field):
            yield from (one for key in value for one in _below(value[key]))
        else:
            for one in value if field.is_repeated else (value,):
                yield from _below(one)


def _odd(chance: random.Random, field: FieldDescriptor) -> Any:
    if field.type == F.TYPE_STRING:
        return chance.choice(STRINGS)
    if field.type == F.TYPE_BYTES:
        return chance.choice(BYTES)
    if field.type == F.TYPE_BOOL:
        return chance.random() < 0.5
    if field.type == F.TYPE_DOUBLE:
        return chance.choice(DOUBLES)
    return chance.choice(LONG_INTEGERS if field.type == F.TYPE_INT64 else INTEGERS)


def field(chance: random.Random, call: Call) -> Call:
    """Another value in a field, whether it had one or not: members of oneofs push each other out, enums have any number."""
    message = _read(call)
    holder: Any = chance.choice(list(_below(message)))
    if not holder.DESCRIPTOR.fields:
        return call
    one: FieldDescriptor = chance.choice(list(holder.DESCRIPTOR.fields))
    if one.type != F.TYPE_MESSAGE:
        odd = _odd(chance, one)
        if one.is_repeated:
            getattr(holder, one.name).append(odd)
        else:
            setattr(holder, one.name, odd)
    elif _is_map(one):
        getattr(holder, one.name).get_or_create(chance.choice(STRINGS))
    elif one.is_repeated:
        getattr(holder, one.name).add()
    else:
        getattr(holder, one.name).SetInParent()
    return _with(call, message)


def without(chance: random.Random, call: Call) -> Call:
    """A field that has none: a oneof that holds nothing, a message without its parts."""
    message = _read(call)
    holder = chance.choice(list(_below(message)))
    if given := holder.ListFields():
        holder.ClearField(chance.choice(given)[0].name)
    return _with(call, message)


def often(chance: random.Random, call: Call) -> Call:
    """A list that has each item hundreds of times."""
    message = _read(call)
    lists = [
        (one, said.name)
        for one in _below(message)
        for said, _ in one.ListFields()
        if said.is_repeated and not _is_map(said)
    ]
    if not lists:
        return field(chance, call)
    holder, name = chance.choice(lists)
    items = getattr(holder, name)
    items.extend(list(items) * chance.choice((1, 300)))
    return _with(call, message)


def _tree(chance: random.Random) -> Struct:
    """Metadata that no JSON could say, or that nobody wants."""
    made = Struct()
    value = made.fields[chance.choice(("a", "", "__proto__", "\x00", "k" * 10_000, "@type"))]
    match chance.randrange(5):
        case 0:
            value.number_value = chance.choice(DOUBLES)
        case 1:
            for _ in range(chance.choice((10, 31, 40, 49, 60, 300))):
                value = value.list_value.values.add()
        case 2:
            for _ in range(chance.choice((10, 31, 49))):
                value = value.struct_value.fields["a"]
            value.bool_value = True
        case 3:
            value.list_value.values.add().string_value = chance.choice(STRINGS)
            value.list_value.values.extend(list(value.list_value.values) * 3000)
        case _:
            value.SetInParent()  # a value without a value
    return made


def metadata_of_it(chance: random.Random, call: Call) -> Call:
    """A Struct where there may be one."""
    message = _read(call)
    holders = [
        (one, said.name)
        for one in _below(message)
        for said in one.DESCRIPTOR.fields
        if said.message_type and said.message_type.full_name == "google.protobuf.Struct"
    ]
    if not holders:
        return field(chance, call)
    holder, name = chance.choice(holders)
    getattr(holder, name).ParseFromString(_tree(chance).SerializeToString())
    return _with(call, message)


# --- bytes -------------------------------------------------------------------------------------------------


def stranger(chance: random.Random, call: Call) -> Call:
    """The message of another rpc."""
    return replace(call, messages=_right(chance, lambda _, c: str(c.random())).messages)


def cut(chance: random.Random, call: Call) -> Call:
    """A beginning."""
    body = call.messages[0]
    return replace(call, messages=(body[: chance.randrange(len(body) + 1)],))


def flipped(chance: random.Random, call: Call) -> Call:
    """Some bytes are others: tags, lengths, letters that are no UTF-8 any more."""
    body = bytearray(call.messages[0] or b"\x0a\x00")
    for _ in range(chance.randint(1, 4)):
        body[chance.randrange(len(body))] = chance.choice((chance.randrange(256), 0xFF, 0xC0))
    return replace(call, messages=(bytes(body),))


def longer(chance: random.Random, call: Call) -> Call:
    """Something after it, or itself once more: protobuf merges."""
    body = call.messages[0]
    return replace(call, messages=(body + chance.choice((*TAILS, body, body * 20)),))


def noise(chance: random.Random, call: Call) -> Call:
    """Bytes that mean nothing."""
    return replace(call, messages=(chance.randbytes(chance.choice((1, 40, 3000))),))


def oversize(chance: random.Random, call: Call) -> Call:
    """More than is taken."""
    return replace(call, messages=(b"\xfa\x3f" + b"\x80\x80\xc0\x02" + bytes(TOO_LARGE),))


def many(chance: random.Random, call: Call) -> Call:
    """No message, or several, where one is awaited."""
    return replace(call, messages=call.messages * chance.choice((0, 0, 2, 100)))


# --- metadata, path ------------------------------------------------------------------------------------------


def _told(call: Call, key: str, value: str | bytes, *, instead: bool) -> Call:
    kept = [one for one in call.metadata if not instead or one[0] != key]
    return replace(call, metadata=(*kept, (key, value)))


def metadata(chance: random.Random, call: Call) -> Call:
    """Something odd in the metadata, perhaps beside what is right; or bytes, under a name for bytes."""
    key, instead = chance.choice(KEYS), chance.random() < 0.7
    if chance.random() < 0.2:
        return _told(call, f"{key}-bin", chance.randbytes(20), instead=instead)
    return _told(call, key, chance.choice(PLAIN), instead=instead)


def version(chance: random.Random, call: Call) -> Call:
    """Another version."""
    return _told(call, "a2a-version", chance.choice(VERSIONS), instead=chance.random() < 0.8)


def agent(chance: random.Random, call: Call) -> Call:
    """Another agent."""
    return _told(call, "a2a-agent", chance.choice(AGENTS), instead=chance.random() < 0.8)


def shown(chance: random.Random, call: Call) -> Call:
    """Credentials that are none."""
    return replace(call, metadata=(*call.metadata, chance.choice(CREDENTIALS)))


def path(chance: random.Random, call: Call) -> Call:
    """Another rpc, or none."""
    return replace(call, path=chance.choice(PATHS))


BENDS: Sequence[tuple[Bend, int]] = (
    (field, 26), (without, 8), (often, 4), (metadata_of_it, 8), (stranger, 5), (cut, 5), (flipped, 8), (longer, 6), (noise, 2),
    (oversize, 1), (many, 3), (metadata, 8), (version, 3), (agent, 3), (shown, 6), (path, 5),
)  # fmt: skip


def hostile_call(number: int, known: Known) -> Call:
    """Call `number`: a right one, bent once, sometimes more often. `known` gives an id of a task or a context."""
    chance = random.Random(number)
    call = _right(chance, known)
    bends, weights = zip(*BENDS, strict=True)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        bend: Bend = chance.choices(bends, weights)[0]
        try:
            call = bend(chance, call)
        except (DecodeError, KeyError, IndexError):  # its message is none any more
            continue
        done.append(bend.__name__)
    return replace(call, bent=tuple(done))
