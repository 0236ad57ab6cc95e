"""Errors as clients of OpenAI's API understand them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_doors.texts import name_fields
from a2a_doors.turn_text import TurnText
from a2a_tasks.bindings.errors import headers_of, to_a2a_error
from a2a_tasks.protocol.errors import (
    A2AError,
    Forbidden,
    InvalidParams,
    MethodNotFound,
    Overloaded,
    RateLimited,
    Unauthenticated,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import TaskState

__all__ = ["Refusal", "of_error", "of_turn"]

SERVER_ERROR = 500
CODES: tuple[tuple[type[A2AError], str], ...] = (
    (Unauthenticated, "invalid_api_key"),
    (Forbidden, "insufficient_permissions"),
    (RateLimited, "rate_limit_exceeded"),
    (Overloaded, "overloaded"),
    (MethodNotFound, "not_found"),
)
#: Clients repeat every status from 500 by themselves, unless they are told not to.
FINAL = (b"x-should-retry", b"false")
#: Seconds of `Retry-After` that a client may sleep. That of npm sleeps through any number, beyond its own timeout.
LONGEST_SLEEP = 60


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error."""

    status: int
    message: str
    code: str
    param: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ((b"retry-after", b"1"),)

    @property
    def body(self) -> bytes:
        """The JSON."""
        kind = "server_error" if self.status >= SERVER_ERROR else "invalid_request_error"
        about = {"type": kind, "param": self.param, "code": self.code}
        return write({"error": {"message": self.message, **about}})


def of_error(fault: Exception) -> Refusal:
    """Return the answer for an exception; no detail of the host leaves it."""
    error = to_a2a_error(fault)
    violations = error.violations if isinstance(error, InvalidParams) else ()
    param = ", ".join(filter(None, (path for path, _ in violations))) or None
    code = next((code for kind, code in CODES if isinstance(error, kind)), error.reason.lower())
    if "model" in error.metadata:
        code, param = "model_not_found", "model"
    headers = tuple(headers_of(error))
    if int(dict(headers).get(b"retry-after", b"0")) > LONGEST_SLEEP:
        headers = (*headers, FINAL)
    return Refusal(error.http_status, name_fields(error), code or "invalid_request", param, headers)


def of_turn(turn: TurnText) -> Refusal:
    """Return the answer for a turn that has failed; a rejected message is the client's own fault."""
    assert turn.status is not None  # noqa: S101 - it has ended
    state = turn.status.state
    status = 400 if state is TaskState.REJECTED else SERVER_ERROR
    return Refusal(status, turn.words, f"agent_{state.word}", headers=(FINAL,))
