"""Errors over gRPC (A2A 1.0 §10.6): a status, and a google.rpc.Status with details in the trailing metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from a2a_tasks.agents import Agent
from a2a_tasks.bindings.circumstances import switches
from a2a_tasks.bindings.faults import headers_of
from a2a_tasks.bindings.grpc.schema import FINAL
from a2a_tasks.protocol.dialects.dialect import by_kind
from a2a_tasks.protocol.dialects.v10 import CODES_1_0_0
from a2a_tasks.protocol.errors import A2AError, InvalidParams

__all__ = ["Refusal", "refusal"]

DETAILS = "grpc-status-details-bin"
Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as gRPC tells it."""

    code: grpc.StatusCode
    message: str
    trailers: Metadata


def _code(fault: A2AError, package: str) -> grpc.StatusCode:
    name = fault.grpc_status
    if package != FINAL or switches().v10_error_table == "1.0.0":
        _, name = by_kind(CODES_1_0_0, fault) or (0, name)
    return grpc.StatusCode[name]


def _message(fault: A2AError, package: str) -> str:
    """Peers of 0.3 tell errors apart by the name before the colon."""
    if package == FINAL or not fault.reason:
        return fault.message
    name = "".join(word.capitalize() for word in fault.reason.removesuffix("_ERROR").split("_"))
    return f"{name}Error: {fault.message}"


def _bad_request(fault: InvalidParams) -> BadRequest:
    violation = BadRequest.FieldViolation
    return BadRequest(
        field_violations=[violation(field=at, description=text) for at, text in fault.violations]
    )


def _details(fault: A2AError, headers: Mapping[str, str]) -> list[Message]:
    found: list[Message] = []
    if fault.reason:
        info: Mapping[str, Any] = fault.info
        found.append(
            ErrorInfo(reason=info["reason"], domain=info["domain"], metadata=info["metadata"])
        )
    if isinstance(fault, InvalidParams) and fault.violations:
        found.append(_bad_request(fault))
    if wait := headers.get("retry-after"):
        found.append(RetryInfo(retry_delay=Duration(seconds=math.ceil(float(wait)))))
    return found


def _packed(detail: Message) -> Packed:
    packed = Packed()
    packed.Pack(detail)
    return packed


def refusal(fault: A2AError, package: str, agent: Agent | None = None) -> Refusal:
    """The error in the words of a package; what HTTP says in headers (challenges, Retry-After) is in the trailers."""
    code, message = _code(fault, package), _message(fault, package)
    headers = [(name.decode(), value.decode()) for name, value in headers_of(fault, agent)]
    status = Status(
        code=code.value[0],
        message=message,
        details=[_packed(detail) for detail in _details(fault, dict(headers))],
    )
    return Refusal(code, message, (*headers, (DETAILS, status.SerializeToString())))
