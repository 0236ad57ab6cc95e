"""The JSON-RPC 2.0 envelope (A2A 1.0 §9): bytes to a call, a result or an error to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.protocol.errors import A2AError, InvalidRequest
from a2a_tasks.protocol.jsontext import MAX_VALUES, NO_ID, Flawed, read, write

__all__ = ["JsonRpcCall", "error", "read_call", "result", "begin_result"]

NULL = b"null"
NEEDED = (
    'A request needs "jsonrpc": "2.0", a string "method" and an "id" that is a string or number'
)
#: Maximum length of an id: every event of a stream repeats it.
MAX_ID_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class JsonRpcCall:
    """A request: its id as JSON (echoed with its type), its method and its parameters (normally an object)."""

    id: bytes
    method: str
    params: Any


class BadCall(Exception):
    """A mistake in an envelope, with the id for the answer."""

    def __init__(self, id_: bytes, cause: A2AError) -> None:
        super().__init__(str(cause))
        self.id, self.cause = id_, cause


def _id_of(document: Any) -> bytes:
    found = document.get("id") if isinstance(document, Mapping) else None
    return write(found) if _is_id(found) else NULL


def _is_id(found: Any) -> bool:
    if isinstance(found, str):
        return len(found) <= MAX_ID_LENGTH
    return isinstance(found, int | float | None) and not isinstance(found, bool)


def _is_envelope(document: Any) -> bool:
    return (
        isinstance(document, Mapping)
        and document.get("jsonrpc") == "2.0"
        and isinstance(document.get("method"), str)
        and _is_id(document.get("id"))
    )


def _why_not(document: Any) -> str:
    if isinstance(document, list):
        return "Batches are not supported"
    if not isinstance(document, Mapping):
        return "A request must be a JSON object"
    return NEEDED


def read_call(body: bytes, *, max_depth: int = 64, max_values: int = MAX_VALUES) -> JsonRpcCall:
    """Return the call in `body`. Raises BadCall with ParseError, InvalidRequest or InvalidParams inside."""
    try:
        document = read(body, max_depth=max_depth, max_values=max_values)
    except Flawed as flaw:
        request_id = flaw.document.get("id") if isinstance(flaw.document, Mapping) else None
        wrong = InvalidRequest(NEEDED) if request_id is NO_ID else flaw
        raise BadCall(_id_of(flaw.document), wrong) from None
    except A2AError as fault:
        raise BadCall(NULL, fault) from None
    if not _is_envelope(document):
        raise BadCall(_id_of(document), InvalidRequest(_why_not(document)))
    params = document.get("params")
    id_ = write(document.get("id"))
    return JsonRpcCall(id_, document["method"], {} if params is None else params)


def begin_result(id_: bytes) -> bytes:
    """Return the text before the result; one closing brace follows the result."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"result":'


def result(id_: bytes, encoded: bytes) -> bytes:
    """Return a response with the already encoded result."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"result":' + encoded + b"}"


def error(id_: bytes, error: Mapping[str, Any]) -> bytes:
    """Return a response with an error object of a dialect."""
    return b'{"jsonrpc":"2.0","id":' + id_ + b',"error":' + write(error) + b"}"
