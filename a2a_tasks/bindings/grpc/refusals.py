"""Errors over gRPC (A2A 1.0 §10.6): a status, and a google.rpc.Status with details in the trailing metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import status_pb2
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo

from a2a_tasks.agents import Agent
from a2a_tasks.bindings.circumstances import switches
from a2a_tasks.bindings.faults import headers_of
from a2a_tasks.bindings.grpc.call import Metadata, Status
from a2a_tasks.protocol.dialects.dialect import by_kind
from a2a_tasks.protocol.dialects.v10 import CODES_1_0_0
from a2a_tasks.protocol.errors import A2AError, InvalidParams, TaskEnded

__all__ = ["Refusal", "refusal"]

DETAILS = "grpc-status-details-bin"
#: Of 8 KiB of metadata, which is what clients take: bytes of wrong fields, and characters of a text and of a name, which may be the client's own.
MOST_BYTES, MOST_TEXT, MOST_NAME = 3072, 256, 1024


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as gRPC tells it."""

    code: Status
    message: str
    trailers: Metadata


def _named(fault: A2AError, dialect: str) -> A2AError:
    """The error that a dialect has for one: to 0.3 it is a wrong parameter to name a task that has ended."""
    if dialect == "v03" and isinstance(fault, TaskEnded):
        return InvalidParams(fault.message)
    return fault


def _code(fault: A2AError, dialect: str) -> Status:
    name = fault.grpc_status
    if dialect != "v10" or switches().v10_error_table == "1.0.0":
        _, name = by_kind(CODES_1_0_0, fault) or (0, name)
    return Status[name]


def _message(fault: A2AError, dialect: str) -> str:
    """Peers of 0.3 tell errors apart by the name before the colon."""
    if dialect == "v10" or not fault.reason:
        return fault.message
    name = "".join(word.capitalize() for word in fault.reason.removesuffix("_ERROR").split("_"))
    return f"{name}Error: {fault.message}"


def _clipped(text: str, most: int = MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _bad_request(fault: InvalidParams) -> BadRequest:
    """The first of the wrong fields."""
    told = BadRequest()
    for at, text in fault.violations:
        one = BadRequest.FieldViolation(field=_clipped(at), description=_clipped(text))
        if told.ByteSize() + one.ByteSize() > MOST_BYTES:
            break
        told.field_violations.append(one)
    return told


def _details(fault: A2AError, headers: Mapping[str, str]) -> list[Message]:
    found: list[Message] = []
    if fault.reason:
        info: Mapping[str, Any] = fault.info
        about = {key: _clipped(value, MOST_NAME) for key, value in info["metadata"].items()}
        found.append(ErrorInfo(reason=info["reason"], domain=info["domain"], metadata=about))
    if isinstance(fault, InvalidParams) and fault.violations:
        found.append(_bad_request(fault))
    if wait := headers.get("retry-after"):
        found.append(RetryInfo(retry_delay=Duration(seconds=math.ceil(float(wait)))))
    return found


def _packed(detail: Message) -> Packed:
    packed = Packed()
    packed.Pack(detail)
    return packed


def refusal(fault: A2AError, dialect: str, agent: Agent | None = None) -> Refusal:
    """The error in the words of a dialect; what HTTP says in headers (challenges, Retry-After) is in the trailers."""
    fault = _named(fault, dialect)
    code, message = _code(fault, dialect), _clipped(_message(fault, dialect))
    headers = [(name.decode(), value.decode()) for name, value in headers_of(fault, agent)]
    status = status_pb2.Status(
        code=code,
        message=message,
        details=[_packed(detail) for detail in _details(fault, dict(headers))],
    )
    return Refusal(code, message, (*headers, (DETAILS, status.SerializeToString())))
