"""Errors of the management API, and the handler that answers all of them in one shape (RFC 9457).

No answer contains messages of Python, Django or the database.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from a2a_tasks.access.challenges import challenges
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol import errors
from a2a_tasks.store.db import is_away

__all__ = [
    "MEDIA_TYPE",
    "Conflict",
    "Forgery",
    "InvalidQuery",
    "MissingPermission",
    "ProblemSerializer",
    "exception_handler",
]

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_outage = ThrottledLogger(
    logger, "a request of the management API was turned away, the database is away"
)


class Conflict(exceptions.APIException):
    """The object is not in a state that allows the action. The client gets the text."""

    status_code = 409
    default_code = "conflict"


class InvalidQuery(exceptions.ValidationError):
    """Wrong parameters of the query, as opposed to members of the body. `detail` names them."""


class MissingPermission(errors.Forbidden):
    """A user of the staff lacks a permission; `metadata["permission"]` names it."""


class Forgery(errors.Forbidden):
    """A change that another site may have made a browser send: no CSRF token, or the browser says so."""


class MistakeSerializer(serializers.Serializer[Any]):
    """One fault of the request."""

    where = serializers.ChoiceField(["query", "body"])
    name = serializers.CharField(help_text="The wrong parameter, or the path of the wrong member.")
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """The description of an error (RFC 9457)."""

    type = serializers.CharField(help_text="`about:blank`; see `code`.")
    title = serializers.CharField(help_text="The phrase of the HTTP status.")
    status = serializers.IntegerField()
    code = serializers.CharField(
        help_text="`invalid`, `unauthenticated`, `missing_scope`, `missing_permission`, `csrf`, `not_found`, "
        "`method_not_allowed`, `conflict`, `too_large`, `unsupported_media_type`, `too_many_requests`, `unavailable`, `internal`."
    )
    detail = serializers.CharField(help_text="Description of the error for people.")
    errors = MistakeSerializer(many=True, required=False)  # type: ignore[assignment] # DRF takes fields off the class
    scope = serializers.CharField(required=False, help_text="The missing scopes of a caller.")
    permission = serializers.CharField(
        required=False, help_text="The missing permission of a user."
    )


class _Answer(NamedTuple):
    status: int
    code: str
    #: Empty = the text of the exception, which is written for clients.
    detail: str = ""


UNAVAILABLE = _Answer(503, "unavailable", "The host cannot do this now")
#: Kinds of exceptions with their answers; the first match counts.
ANSWERS: list[tuple[tuple[type[BaseException], ...], _Answer]] = [
    (
        (
            exceptions.ValidationError,
            errors.InvalidParams,
            errors.ParseError,
            errors.ContentTypeNotSupported,
        ),
        _Answer(400, "invalid", "The request is wrong"),
    ),
    ((errors.Unauthenticated,), _Answer(401, "unauthenticated")),
    ((errors.InsufficientScope,), _Answer(403, "missing_scope")),
    ((MissingPermission,), _Answer(403, "missing_permission")),
    ((exceptions.PermissionDenied,), _Answer(403, "missing_permission", "This is not allowed")),
    ((Forgery,), _Answer(403, "csrf")),
    (
        (Http404, exceptions.NotFound, errors.TaskNotFound),
        _Answer(404, "not_found", "There is nothing here"),
    ),
    (
        (exceptions.MethodNotAllowed,),
        _Answer(405, "method_not_allowed", "This cannot be done here"),
    ),
    ((Conflict, errors.TaskNotCancelable, errors.UnsupportedOperation), _Answer(409, "conflict")),
    ((errors.TooLarge,), _Answer(413, "too_large")),
    (
        (exceptions.UnsupportedMediaType,),
        _Answer(415, "unsupported_media_type", "The body must be application/json"),
    ),
    ((errors.RateLimited,), _Answer(429, "too_many_requests")),
    ((errors.Overloaded,), UNAVAILABLE),
]
INTERNAL = _Answer(500, "internal", "Internal error. The log of the host has it")


def exception_handler(fault: Exception, context: Mapping[str, Any]) -> Response:
    """Return the answer to any exception of a view (DRF's `EXCEPTION_HANDLER`)."""
    otherwise = UNAVAILABLE if is_away(fault) else INTERNAL
    answer = next((answer for kinds, answer in ANSWERS if isinstance(fault, kinds)), otherwise)
    if answer is INTERNAL:
        logger.error("the management API failed", exc_info=fault)
    elif is_away(fault):
        _outage.warning(fault)
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(answer.status).phrase,
        "status": answer.status,
        "code": answer.code,
        "detail": answer.detail or str(fault),
    }
    if answer.code == "invalid":
        mistakes = _list_mistakes(fault)
        body["errors"] = [{"where": w, "name": n, "detail": text} for w, n, text in mistakes]
    if isinstance(fault, errors.InsufficientScope):
        body["scope"] = fault.metadata["scope"]
    if isinstance(fault, MissingPermission):
        body["permission"] = fault.metadata["permission"]
    return Response(body, answer.status, headers=_make_headers(fault), content_type=MEDIA_TYPE)


def _make_headers(fault: Exception) -> dict[str, str]:
    if isinstance(fault, errors.Unauthenticated | errors.InsufficientScope):
        ways = ", ".join(challenges(fault, None))
        return {"WWW-Authenticate": ways} if ways else {}
    if isinstance(fault, errors.RateLimited | errors.Overloaded):
        return {"Retry-After": fault.metadata.get("retry_after", "1")}
    return {"Retry-After": "5"} if is_away(fault) else {}


def _list_mistakes(fault: Exception) -> list[tuple[str, str, str]]:
    """Return the faults of a request: query or body, name, text."""
    match fault:
        case exceptions.ValidationError():
            where = "query" if isinstance(fault, InvalidQuery) else "body"
            return [(where, name, text) for name, text in _flatten(fault.detail)]
        case errors.InvalidParams():
            return [("body", name, text) for name, text in fault.violations]
        case errors.ParseError():
            return [("body", "", "is not JSON")]
    return [("body", "", str(fault))]


def _flatten(detail: Any, path: str = "") -> list[tuple[str, str]]:
    """Return DRF's tree of errors as a list of (path, text)."""
    if isinstance(detail, str):
        return [(path, str(detail))]
    if isinstance(detail, Mapping):
        below = [("" if name == "non_field_errors" else name, one) for name, one in detail.items()]
    else:  # texts about one value, or a tree for each item of a list
        below = [("" if isinstance(one, str) else n, one) for n, one in enumerate(detail)]
    mistakes = []
    for name, one in below:
        mistakes += _flatten(one, ".".join(str(part) for part in (path, name) if part != ""))
    return mistakes
