"""What may be answered to a hostile call, and what may not."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from a2a_grpc.binding.schema import message_class
from lab.hostile.judge import LEAKS
from lab.hostile.rpc_bending import Call
from lab.hostile.rpc_wire import Said
from lab.matrix.rpc_asks import described

__all__ = ["leaks_of", "refused", "wrong_call"]

DETAILS = "grpc-status-details-bin"
#: What a host says that was understood, or not; never UNKNOWN, INTERNAL or DATA_LOSS, and every answer comes in time.
MAY = {
    "OK", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "FAILED_PRECONDITION",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "ABORTED",
}  # fmt: skip
#: What grpcio refuses by itself, before the host is asked: no such rpc, and too large.
TRANSPORT = {"UNIMPLEMENTED", "RESOURCE_EXHAUSTED"}
#: What peers of 0.3 tell errors apart by: no words of Python, though they look like it.
NAMES = (
    "ParseError", "InvalidRequestError", "MethodNotFoundError", "InvalidParamsError", "TaskNotFoundError", "TaskNotCancelableError",
    "PushNotificationNotSupportedError", "UnsupportedOperationError", "ContentTypeNotSupportedError", "VersionNotSupportedError",
    "ExtensionSupportRequiredError", "ExtendedAgentCardNotConfiguredError", "UnauthenticatedError", "IdempotencyConflictError",
)  # fmt: skip


def refused(said: Said) -> bool:
    """Was the call refused?"""
    return said.code != "OK"


def leaks_of(text: bytes) -> list[str]:
    """The words that should not be there."""
    for name in NAMES:
        text = text.replace(f"{name}: ".encode(), b"")
    return [found[0].decode(errors="replace") for found in LEAKS.finditer(text)]


def wrong_call(call: Call, said: Said) -> Iterator[str]:
    """Everything that is wrong with an answer."""
    if said.code not in MAY:
        yield f"status {said.code}: {said.message}"
    shown = [said.message.encode(), *(_bytes(value) for _, value in said.metadata), *said.items]
    for text in shown:
        for word in leaks_of(text):
            yield f"says {word!r}"
    if any(
        mark in _bytes(v) for k, v in said.metadata if not k.endswith("-bin") for mark in b"\r\n"
    ):
        yield "metadata with a line break"
    if any(key == "set-cookie" for key, _ in said.metadata):
        yield "metadata of the client's"
    yield from _error(call, said) if refused(said) else _items(call, said)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _ours(call: Call) -> bool:
    """Is it an rpc of ours?"""
    try:
        described(call.path)
    except (KeyError, IndexError):
        return False
    return True


def _error(call: Call, said: Said) -> Iterator[str]:
    told = Status()
    details = said.of(DETAILS)
    if not isinstance(details, bytes):
        if _ours(call) and said.code not in TRANSPORT:
            yield "an error without details"
        return
    told.ParseFromString(details)
    if (told.code, told.message) != (StatusCode[said.code].value[0], said.message):
        yield "details of another error"
    kinds = [detail.TypeName() for detail in told.details]
    if said.items and said.code not in {"UNAVAILABLE"}:
        yield "an error after a message"
    if said.code == "UNAVAILABLE" and RetryInfo.DESCRIPTOR.full_name not in kinds:
        yield "unavailable, and nobody knows until when"
    if said.code == "UNAUTHENTICATED" and not said.of("www-authenticate"):
        yield "no word of which credentials would do"
    if not {ErrorInfo.DESCRIPTOR.full_name, RetryInfo.DESCRIPTOR.full_name} & {
        *kinds
    } and said.code not in {"UNAUTHENTICATED", "PERMISSION_DENIED"}:
        yield f"an error that names no reason: {said.message}"


def _items(call: Call, said: Said) -> Iterator[str]:
    if not _ours(call):
        return
    rpc = described(call.path)
    if not rpc.server_streaming and len(said.items) != 1:
        yield f"{len(said.items)} messages"
    kind = message_class(rpc.output_type.full_name)
    for item in said.items:
        try:
            kind.FromString(item)
        except DecodeError:
            yield f"no {rpc.output_type.name}: {item[:100]!r}"
