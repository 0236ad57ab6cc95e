"""Errors of the management API, and the handler that answers all of them in one shape (RFC 9457).

No answer contains messages of Python, Django or the database.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from a2a_tasks.access.challenges import challenges
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol import errors
from a2a_tasks.store.db import is_away

__all__ = [
    "MEDIA_TYPE",
    "PROBLEMS",
    "Conflict",
    "Forgery",
    "InvalidQuery",
    "MissingPermission",
    "ProblemSerializer",
    "exception_handler",
]

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_outage = ThrottledLogger(logger, "the management API refused a request, the database is away")


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


#: The problems by the status of the answer: the code, and a text for everybody.
PROBLEMS = {
    400: ("invalid", "The request is wrong; `errors` names what."),
    401: ("unauthenticated", "No credentials, or wrong ones; `WWW-Authenticate` has the schemes."),
    403: ("missing_permission", "The named scope or permission, or the CSRF token, is missing."),
    404: ("not_found", "Not found, or not visible to this operator."),
    405: ("method_not_allowed", "This cannot be done here."),
    409: ("conflict", "It is not in a state in which this can be done."),
    413: ("too_large", "The body is too large."),
    415: ("unsupported_media_type", "The body is not `application/json`."),
    429: ("too_many_requests", "There were too many requests."),
    500: ("internal", "Internal error. The log of the host has it."),
    503: ("unavailable", "The database is away, or busy; `Retry-After` says when to retry."),
}
#: The statuses of exceptions whose own texts are not for clients.
VEILED = {400, 404, 500, 503}
#: Exceptions with a code of their own.
CODES: dict[type[Exception], str] = {errors.InsufficientScope: "missing_scope", Forgery: "csrf"}


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
    code = serializers.ChoiceField([*(code for code, _ in PROBLEMS.values()), *CODES.values()])
    detail = serializers.CharField(help_text="Description of the error for people.")
    errors = MistakeSerializer(many=True, required=False)  # type: ignore[assignment] # DRF takes fields off the class
    scope = serializers.CharField(required=False, help_text="The missing scopes of a caller.")
    permission = serializers.CharField(
        required=False, help_text="The missing permission of a user."
    )


def exception_handler(fault: Exception, context: Mapping[str, Any]) -> Response:
    """Return the answer to any exception of a view (DRF's `EXCEPTION_HANDLER`)."""
    status = _find_status(fault)
    code, text = PROBLEMS[status]
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("the management API failed", exc_info=fault)
    elif is_away(fault):
        _outage.warning(fault)
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": CODES.get(type(fault), code),
        "detail": text if status in VEILED else str(fault),
    }
    if status == HTTPStatus.BAD_REQUEST:
        mistakes = _list_mistakes(fault)
        body["errors"] = [{"where": w, "name": n, "detail": text} for w, n, text in mistakes]
    if isinstance(fault, errors.Forbidden):
        body |= fault.metadata
    return Response(body, status, headers=_make_headers(fault), content_type=MEDIA_TYPE)


def _find_status(fault: Exception) -> int:
    """Return the status of DRF's exception or of the protocol's error, if the API answers it; else 503 or 500."""
    match fault:
        case errors.TaskNotCancelable() | errors.UnsupportedOperation():
            return Conflict.status_code
        case errors.A2AError() if fault.http_status in PROBLEMS:
            return fault.http_status
        case exceptions.APIException() if fault.status_code in PROBLEMS:
            return fault.status_code
        case Http404():
            return exceptions.NotFound.status_code
    return 503 if is_away(fault) else 500


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
            return [(where, ".".join(path), text) for path, text in _flatten(fault.detail)]
        case errors.InvalidParams():
            return [("body", name, text) for name, text in fault.violations]
        case errors.ParseError():
            return [("body", "", "is not JSON")]
    return [("body", "", str(fault))]


def _flatten(detail: Any, *path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield DRF's tree of errors as pairs of a path and a text."""
    match detail:
        case str():
            yield path, str(detail)
        case Mapping():
            for name, below in detail.items():
                named = () if name == "non_field_errors" else (str(name),)
                yield from _flatten(below, *path, *named)
        case _:  # texts about one value, or a tree for each item of a list
            for number, below in enumerate(detail):
                named = () if isinstance(below, str) else (str(number),)
                yield from _flatten(below, *path, *named)
