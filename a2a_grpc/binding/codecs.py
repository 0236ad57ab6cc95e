"""Readers and writers of messages by their full names."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from google.protobuf.message import DecodeError, Message

from a2a_grpc.binding.schema import message_class
from a2a_tasks import protobuf_json
from a2a_tasks.protobuf_json import Tree

__all__ = ["encoder", "parser", "reader"]

_json = msgspec.json.Decoder().decode


def parser(name: str) -> Callable[[bytes], Message | None]:
    """Return the parser for a message of that full name; its result is None for an unreadable message."""
    from_string = message_class(name).FromString

    def parse(body: bytes) -> Message | None:
        try:
            return from_string(body)
        except DecodeError:
            return None

    return parse


def reader(name: str) -> Callable[[Message], Tree]:
    """Return the reader of parsed messages. It raises InvalidParams for values JSON lacks, and for too many."""
    return protobuf_json.reader(message_class(name))


def encoder(name: str) -> Callable[[bytes], bytes]:
    """Return a function from a message's JSON to its bytes. Members without a field are left out."""
    made, write = message_class(name), protobuf_json.writer(message_class(name))

    def encode(text: bytes) -> bytes:
        return made(**write(_json(text))).SerializeToString()

    return encode
