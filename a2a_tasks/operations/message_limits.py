"""Size limits of one message, besides those of the dialects (ids have at most 256 characters)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.operators import RESERVED
from a2a_tasks.protocol.requests import SendMessageRequest

__all__ = ["check_message", "check_size"]


def check_message(request: SendMessageRequest, *, by_operator: bool = False) -> None:
    """Raise InvalidParams for fields that are too large, and for metadata that only an operator's message may have."""
    found = list(_too_much(request))
    if not by_operator:
        metadata = request.message.metadata or {}
        found += [
            ("message.metadata", f"must not have {key}: only the host sets it")
            for key in RESERVED
            if key in metadata
        ]
    if found:
        raise InvalidParams(violations=found)


def check_size(message: bytes) -> None:
    """Check the message as it will be stored. Raises InvalidParams."""
    if len(message) > conf.MAX_MESSAGE_BYTES:
        raise InvalidParams.field("message", f"must have at most {conf.MAX_MESSAGE_BYTES} bytes")


def _too_much(request: SendMessageRequest) -> Iterator[tuple[str, str]]:
    message = request.message
    if len(message.parts) > conf.MAX_PARTS:
        yield "message.parts", f"must have at most {conf.MAX_PARTS} parts"
        return
    for name, named in (
        ("extensions", message.extensions),
        ("referenceTaskIds", message.reference_task_ids),
    ):
        if len(named) > conf.MAX_REFERENCES:
            yield f"message.{name}", f"must name at most {conf.MAX_REFERENCES}"
    for path, metadata in _metadata(request):
        if len(metadata) > conf.MAX_METADATA_KEYS:
            yield path, f"must have at most {conf.MAX_METADATA_KEYS} keys"
        elif len(write(metadata)) > conf.MAX_METADATA_BYTES:
            yield path, f"must have at most {conf.MAX_METADATA_BYTES} bytes"


def _metadata(request: SendMessageRequest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    message = request.message
    if request.metadata:
        yield "metadata", request.metadata
    if message.metadata:
        yield "message.metadata", message.metadata
    for number, part in enumerate(message.parts):
        if part.metadata:
            yield f"message.parts[{number}].metadata", part.metadata
