"""The errors of requests, as one tree; each class knows its codes in every binding.

    A2AError
      RequestError            the client's fault, before the protocol's own errors
        ParseError            -32700  400   the body is not JSON
        InvalidRequest        -32600  400   not a request envelope
        MethodNotFound        -32601  404
        InvalidParams         -32602  400   names each bad field
          IdempotencyConflict -32602  422   another request under a key that was used
        Unauthenticated       -32000  401
          WrongCredentials    -32000  401
        Forbidden             -32000  403
          InsufficientScope   -32000  403
        MethodNotAllowed      -32600  405
        TooLarge              -32600  413
        RateLimited           -32000  429   with Retry-After
        Overloaded            -32000  503   with Retry-After
      ProtocolError           the nine of A2A 1.0 §3.3.2, with ErrorInfo
        TaskNotFound                  -32001  404
        TaskNotCancelable             -32002  400
        PushNotificationNotSupported  -32003  400
        UnsupportedOperation          -32004  400
        ContentTypeNotSupported       -32005  400
        InvalidAgentResponse          -32006  500
        ExtendedAgentCardNotConfigured -32007 400
        ExtensionSupportRequired      -32008  400
        VersionNotSupported           -32009  400
      InternalError           -32603  500   a fault of the host, without details

Codes: A2A 1.0.1 §5.4 (JSON-RPC, HTTP, gRPC).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import ClassVar

DOMAIN = "a2a-protocol.org"


class A2AError(Exception):
    """Any answer that is not a result. The message is written for the client and safe to send."""

    code: ClassVar[int] = -32603
    http_status: ClassVar[int] = 500
    grpc_status: ClassVar[str] = "INTERNAL"
    reason: ClassVar[str] = ""
    title: ClassVar[str] = "Internal error"

    def __init__(self, message: str = "", **metadata: str) -> None:
        super().__init__(message or self.title)
        self.message = message or self.title
        self.metadata = metadata

    @property
    def details(self) -> list[dict[str, object]]:
        """Typed details (google.rpc), for JSON-RPC `data` and HTTP `details`."""
        return []

    @property
    def info(self) -> dict[str, object]:
        """The error as a google.rpc.ErrorInfo."""
        return {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.reason,
            "domain": DOMAIN,
            "metadata": self.metadata,
        }


class InternalError(A2AError):
    """A fault of the host; its details are only in the host's log."""

    reason = "INTERNAL_ERROR"


class RequestError(A2AError):
    """The request cannot be served as it is."""

    code, http_status, grpc_status = -32600, 400, "INVALID_ARGUMENT"


class ParseError(RequestError):
    """The body is not JSON."""

    code, reason, title = -32700, "PARSE_ERROR", "Invalid JSON payload"


class InvalidRequest(RequestError):
    """The body is JSON, but not a request."""

    reason, title = "INVALID_REQUEST", "Request payload validation error"


class MethodNotFound(RequestError):
    """No such method or route."""

    code, http_status, grpc_status = -32601, 404, "NOT_FOUND"
    reason, title = "METHOD_NOT_FOUND", "Method not found"


class MethodNotAllowed(RequestError):
    """The route exists, but not with this verb. `metadata["allow"]` lists the allowed ones."""

    http_status, grpc_status, title = 405, "UNIMPLEMENTED", "Method not allowed"


class TooLarge(RequestError):
    """The body is larger than the host accepts."""

    http_status, title = 413, "Request body too large"


class Unauthenticated(RequestError):
    """No or wrong credentials."""

    code, http_status, grpc_status = -32000, 401, "UNAUTHENTICATED"
    title = "Authentication required"


class Forbidden(RequestError):
    """The caller may not do this at all (never used for a single object)."""

    code, http_status, grpc_status, title = -32000, 403, "PERMISSION_DENIED", "Forbidden"


class WrongCredentials(Unauthenticated):
    """Credentials that are not valid, or not accepted here. The reason is in the log, not in the answer."""

    #: The reason of the refusal, without any part of the credentials.
    why = ""
    #: The principal of the credentials; empty = unknown. Only for the operator, too.
    principal = ""
    #: True if the credentials are valid for something else: then they are not counted as guesses.
    genuine = False


class InsufficientScope(Forbidden):
    """The caller lacks scopes; `metadata["scope"]` lists them, separated by spaces."""

    @classmethod
    def for_scopes(cls, scopes: Sequence[str]) -> InsufficientScope:
        """Return the error for a caller that lacks these scopes."""
        named = " ".join(scopes)
        return cls(f"The caller lacks the scope: {named}", scope=named)


class Blame(enum.Enum):
    """The possible cause of a failed database operation, as far as the caller is concerned."""

    NOBODY = enum.auto()  #: an outage: it affects all requests alike
    OTHERS = enum.auto()  #: another transaction holds a resource that this one needs
    ITSELF = enum.auto()  #: it took too long, or failed for a reason of its own


class Overloaded(RequestError):
    """The host is overloaded or the database is away; retry after `metadata["retry_after"]` seconds."""

    code, http_status, grpc_status = -32000, 503, "UNAVAILABLE"
    title = "The host cannot take this request now"
    #: True if it is certain that nothing was written. (Not sent: a client repeats its request under the same key.)
    undone = False
    blame = Blame.NOBODY

    @classmethod
    def away(cls, *, undone: bool, blame: Blame = Blame.NOBODY) -> Overloaded:
        """Return the error for an unavailable database or a failed operation; the client may retry after a second."""
        fault = cls(retry_after="1")
        fault.undone, fault.blame = undone, blame
        return fault


class RateLimited(RequestError):
    """Too many requests, or too much of something at a time; retry after `metadata["retry_after"]` seconds."""

    code, http_status, grpc_status = -32000, 429, "RESOURCE_EXHAUSTED"
    title = "Too many requests"

    @classmethod
    def until(cls, seconds: float, message: str = "") -> RateLimited:
        """Return the error for a caller that may retry after so many seconds."""
        return cls(message, retry_after=str(max(1, math.ceil(seconds))))

    @property
    def details(self) -> list[dict[str, object]]:
        """A google.rpc.RetryInfo, if the time of the next try is known."""
        if "retry_after" not in self.metadata:
            return []
        delay = f"{self.metadata['retry_after']}s"
        return [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]


class InvalidParams(RequestError):
    """The parameters are wrong; `violations` are pairs of a field's path and its mistake."""

    code, reason, title = -32602, "INVALID_PARAMS", "Invalid parameters"

    def __init__(self, message: str = "", violations: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)

    @classmethod
    def field(cls, path: str, description: str) -> InvalidParams:
        """Return an error about one field."""
        return cls(violations=[(path, description)])

    @property
    def details(self) -> list[dict[str, object]]:
        """A google.rpc.BadRequest, if there are violations."""
        if not self.violations:
            return []
        found = [{"field": path, "description": text} for path, text in self.violations]
        return [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": found}]


class ContextMismatch(InvalidParams):
    """The message names a context that is not its task's (A2A 1.0 §3.4.3)."""


class IdempotencyConflict(InvalidParams):
    """A request that differs from the one its `Idempotency-Key` (or message id) was first used for."""

    http_status, reason = 422, "IDEMPOTENCY_CONFLICT"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or "The key was used before, for a different request")

    @property
    def details(self) -> list[dict[str, object]]:
        """A google.rpc.ErrorInfo: its reason distinguishes this error from other invalid parameters."""
        return [self.info]


class ProtocolError(A2AError):
    """An error that the protocol names (A2A 1.0 §3.3.2)."""

    http_status, grpc_status = 400, "FAILED_PRECONDITION"

    @property
    def details(self) -> list[dict[str, object]]:
        """A google.rpc.ErrorInfo (A2A 1.0 §9.5, §11.6)."""
        return [self.info]


class TaskNotFound(ProtocolError):
    """The task does not exist, or this caller may not see it: both get the same answer."""

    code, http_status, grpc_status = -32001, 404, "NOT_FOUND"
    reason, title = "TASK_NOT_FOUND", "Task not found"


class TaskNotCancelable(ProtocolError):
    """The task has ended, perhaps by an earlier cancel: read it."""

    code, reason, title = -32002, "TASK_NOT_CANCELABLE", "Task cannot be canceled"


class PushNotificationNotSupported(ProtocolError):
    """The agent's card declares no push notifications."""

    code, reason = -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"
    title = "Push Notification is not supported"


class UnsupportedOperation(ProtocolError):
    """The agent, or the state of the task, does not allow this."""

    code, reason, title = -32004, "UNSUPPORTED_OPERATION", "This operation is not supported"


class ExtendedCardUndeclared(UnsupportedOperation):
    """The card declares no extended card (A2A 1.0 §3.1.11)."""


class TaskEnded(UnsupportedOperation):
    """A message for a task that has ended (A2A 1.0 §3.1.1); the older dialects call it invalid parameters."""


class TaskNotWaiting(UnsupportedOperation):
    """An answer to a question that the task does not ask (any more), by an operator, or by a client that names it."""


class TaskTaken(UnsupportedOperation):
    """A waiting task was assigned to another operator meanwhile. Never sent to clients."""


class AgentOff(UnsupportedOperation):
    """An operator's message to an agent that is switched off, or not hosted here (any more). Never sent to clients."""


class ContentTypeNotSupported(ProtocolError):
    """A media type that the agent or the endpoint does not accept."""

    code, grpc_status = -32005, "INVALID_ARGUMENT"
    reason, title = "CONTENT_TYPE_NOT_SUPPORTED", "Incompatible content types"


class InvalidAgentResponse(ProtocolError):
    """The agent's answer breaks the protocol."""

    code, http_status, grpc_status = -32006, 500, "INTERNAL"
    reason, title = "INVALID_AGENT_RESPONSE", "Invalid agent response"


class ExtendedAgentCardNotConfigured(ProtocolError):
    """The card declares an extended card, but there is none."""

    code, reason = -32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
    title = "Authenticated Extended Card is not configured"


class ExtensionSupportRequired(ProtocolError):
    """The card requires an extension that the client did not request."""

    code, reason, title = -32008, "EXTENSION_SUPPORT_REQUIRED", "A required extension is missing"


class VersionNotSupported(ProtocolError):
    """The requested A2A-Version is not supported here."""

    code, reason, title = -32009, "VERSION_NOT_SUPPORTED", "Version not supported"
