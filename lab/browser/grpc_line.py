"""A line of grpcurl, read as grpcurl reads it: flags, then address and rpc, and the message through the descriptors."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from a2a_grpc.binding.schema import message_class, service

__all__ = ["Asked", "read"]


@dataclass
class Asked:
    """What the line asks for."""

    package: str
    rpc: str
    #: The JSON of `-d`, and what it is to protobuf.
    message: dict[str, Any]
    parsed: Message
    plaintext: bool = False
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def said(self) -> tuple[str, bytes]:
        """The text of the message, and the bytes of its file."""
        found: Any = self.parsed
        if self.package == "lf.a2a.v1":
            text, file = found.message.parts
            return text.text, file.raw
        text, file = found.request.content
        return text.text, file.file.file_with_bytes

    @property
    def task(self) -> str:
        """The task that is named."""
        found: Any = self.parsed
        return str(found.id if self.package == "lf.a2a.v1" else found.name.removeprefix("tasks/"))


def read(line: str) -> Asked:
    """Raises what a wrong line would fail by: a flag nobody knows, an rpc that is not there, a member without a field."""
    words = iter(shlex.split(line))
    assert next(words) == "grpcurl"
    plaintext, metadata, body, rest = False, dict[str, str](), "", list[str]()
    for word in words:
        match word:
            case "-plaintext":
                plaintext = True
            case "-H":
                name, text = next(words).split(": ", 1)
                metadata[name.lower()] = text
            case "-d":
                body = next(words)
            case _:
                assert not word.startswith("-"), word
                rest.append(word)
    _, path = rest
    package, rpc = path.replace("/", ".").split(".A2AService.")
    about = service(package).methods_by_name[rpc].input_type
    message = json.loads(body)
    parsed = ParseDict(message, message_class(about.full_name)())
    return Asked(package, rpc, message, parsed, plaintext, metadata)
