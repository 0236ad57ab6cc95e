"""Errors over gRPC (A2A 1.0 §10.6): a status, and a google.rpc.Status with details in the trailing metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from grpclib.const import Status

from a2a_grpc.binding.call import Metadata
from a2a_grpc.binding.messages import GrpcForm
from a2a_tasks.agents import Agent
from a2a_tasks.bindings.errors import headers_of
from a2a_tasks.protocol.dialects.dialect import by_kind
from a2a_tasks.protocol.dialects.trees import INVALID
from a2a_tasks.protocol.errors import A2AError, InvalidParams

__all__ = ["GrpcRefusal", "refusal"]

#: Limits within the 8 KiB of metadata that clients accept: bytes of wrong fields, and characters of a text and of a
#: name, which may come from the client.
MAX_BYTES, MAX_TEXT, MAX_NAME = 3072, 256, 1024


@dataclass(frozen=True, slots=True)
class GrpcRefusal:
    """An error in the form of gRPC."""

    code: Status
    message: str
    trailers: Metadata
    details: Sequence[Message]


def _message(fault: A2AError, spoken: GrpcForm) -> str:
    """Return the message; for peers of 0.3 the name of the error precedes a colon."""
    if not spoken.names_errors or not fault.reason:
        return fault.message
    name = "".join(word.capitalize() for word in fault.reason.removesuffix("_ERROR").split("_"))
    return f"{name}Error: {fault.message}"


def _clip(text: str, limit: int = MAX_TEXT) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _bad_request(fault: InvalidParams) -> BadRequest:
    """Return as many of the wrong fields as fit into MAX_BYTES."""
    details = BadRequest()
    for at, text in fault.violations:
        one = BadRequest.FieldViolation(field=_clip(at), description=_clip(text))
        if details.ByteSize() + one.ByteSize() > MAX_BYTES:
            break
        details.field_violations.append(one)
    return details


def _details(fault: A2AError, headers: Mapping[str, str]) -> list[Message]:
    found: list[Message] = []
    if fault.reason:
        info: Mapping[str, Any] = fault.info
        about = {key: _clip(value, MAX_NAME) for key, value in info["metadata"].items()}
        found.append(ErrorInfo(reason=info["reason"], domain=info["domain"], metadata=about))
    if isinstance(fault, InvalidParams) and fault.violations:
        found.append(_bad_request(fault))
    if wait := headers.get("retry-after"):
        found.append(RetryInfo(retry_delay=Duration(seconds=math.ceil(float(wait)))))
    return found


def refusal(fault: A2AError, spoken: GrpcForm, agent: Agent | None = None) -> GrpcRefusal:
    """Return the error in a dialect's form; HTTP's headers (challenges, Retry-After) become trailers."""
    if by_kind(spoken.faces, fault) == INVALID:
        fault = InvalidParams(fault.message)  # the error of 0.3 for a message to an ended task
    _, code = by_kind(spoken.codes, fault) or (0, fault.grpc_status)
    message = _clip(_message(fault, spoken))
    headers = [(name.decode(), value.decode()) for name, value in headers_of(fault, agent)]
    return GrpcRefusal(Status[code], message, headers, _details(fault, dict(headers)))
