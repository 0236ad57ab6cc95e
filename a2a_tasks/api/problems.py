"""Errors in one shape, RFC 9457, and never in the words of Python, Django or the database."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from a2a_tasks.access.challenges import challenges
from a2a_tasks.api.door import Forgery, MissingPermission
from a2a_tasks.outages import Outage
from a2a_tasks.protocol import errors
from a2a_tasks.store.hop import AWAY

__all__ = ["MEDIA_TYPE", "Conflict", "Invalid", "NotFound", "Problem", "answer", "wrong"]

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
_outage = Outage(logger, "a request of the management API was turned away, the database is away")


class Mistake(serializers.Serializer[Any]):
    """One thing that is wrong with the request."""

    where = serializers.ChoiceField(["query", "body"])
    name = serializers.CharField(help_text="The parameter, or the path of the member.")
    detail = serializers.CharField()


class Problem(serializers.Serializer[Any]):
    """What went wrong (RFC 9457)."""

    type = serializers.CharField(help_text="`about:blank`: `code` says more.")
    title = serializers.CharField(help_text="The phrase of the status.")
    status = serializers.IntegerField()
    code = serializers.CharField(
        help_text="`invalid`, `unauthenticated`, `missing_scope`, `missing_permission`, `csrf`, `not_found`, "
        "`method_not_allowed`, `conflict`, `too_large`, `unsupported_media_type`, `unavailable`, `internal`."
    )
    detail = serializers.CharField(help_text="What happened, for people.")
    errors = Mistake(many=True, required=False)  # type: ignore[assignment] # DRF takes fields off the class
    scope = serializers.CharField(required=False, help_text="The scopes a caller lacks.")
    permission = serializers.CharField(required=False, help_text="The permission a person lacks.")


class NotFound(Exception):
    """There is no such thing, or none for this operator: the same answer."""


class Conflict(Exception):
    """The thing is not in a state in which that can be done to it. The text is sent."""


class Invalid(Exception):
    """The request is wrong; `mistakes` are (query or body, name, what is wrong)."""

    def __init__(self, mistakes: Iterable[tuple[str, str, str]]) -> None:
        super().__init__()
        self.mistakes = list(mistakes)


def wrong(where: str, name: str, detail: str) -> Invalid:
    """The error about one parameter or member."""
    return Invalid([(where, name, detail)])


@dataclass(frozen=True)
class _Told:
    """What a fault becomes."""

    status: int
    code: str
    detail: str
    members: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(fault: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler."""
    told = _told(fault)
    body = {
        "type": "about:blank",
        "title": HTTPStatus(told.status).phrase,
        "status": told.status,
        "code": told.code,
        "detail": told.detail,
        **told.members,
    }
    return Response(body, told.status, headers=dict(told.headers), content_type=MEDIA_TYPE)


def _told(fault: Exception) -> _Told:
    match fault:
        case Invalid():
            return _invalid(fault.mistakes)
        case NotFound() | Http404() | errors.TaskNotFound():
            return _Told(404, "not_found", "There is nothing here")
        case Conflict():
            return _Told(409, "conflict", str(fault))
        case errors.A2AError():
            return _of_the_host(fault)
        case exceptions.APIException():
            return _of_drf(fault)
    if isinstance(fault, AWAY):
        _outage.count(fault)
        return _unavailable("5")
    logger.error("the management API failed", exc_info=fault)
    return _Told(500, "internal", "The host made a mistake; it is in its log")


def _invalid(mistakes: Iterable[tuple[str, str, str]]) -> _Told:
    told = [{"where": where, "name": name, "detail": text} for where, name, text in mistakes]
    return _Told(400, "invalid", "The request is wrong", {"errors": told})


def _unavailable(seconds: str) -> _Told:
    return _Told(
        503, "unavailable", "The host cannot do this now", headers={"Retry-After": seconds}
    )


def _later(fault: errors.RequestError, seconds: str) -> _Told:
    if isinstance(fault, errors.RateLimited):
        later = {"Retry-After": seconds}
        return _Told(429, "too_many_requests", fault.message, headers=later)
    return _unavailable(seconds)


def _of_the_host(fault: errors.A2AError) -> _Told:
    """Errors that the protocol's routes know as well."""
    match fault:
        case errors.Unauthenticated():
            ways = {"WWW-Authenticate": ", ".join(challenges(fault, None))}
            return _Told(401, "unauthenticated", fault.message, headers=ways)
        case errors.InsufficientScope():
            ways = {"WWW-Authenticate": ", ".join(challenges(fault, None))}
            scope = fault.metadata["scope"]
            kept = {name: text for name, text in ways.items() if text}
            return _Told(403, "missing_scope", fault.message, {"scope": scope}, kept)
        case MissingPermission():
            return _Told(403, "missing_permission", fault.message, dict(fault.metadata))
        case Forgery():
            return _Told(403, "csrf", fault.message)
        case errors.TaskNotCancelable() | errors.UnsupportedOperation():
            return _Told(409, "conflict", fault.message)
        case errors.TooLarge():
            return _Told(413, "too_large", fault.message)
        case errors.RateLimited() | errors.Overloaded():
            return _later(fault, fault.metadata.get("retry_after", "1"))
        case errors.InvalidParams() | errors.ParseError() | errors.ContentTypeNotSupported():
            return _invalid(_mistakes_in_the_body(fault))
    logger.error("the management API failed", exc_info=fault)
    return _Told(500, "internal", "The host made a mistake; it is in its log")


def _mistakes_in_the_body(fault: errors.A2AError) -> Iterable[tuple[str, str, str]]:
    match fault:
        case errors.InvalidParams():
            return [("body", name, text) for name, text in fault.violations]
        case errors.ParseError():
            return [("body", "", "is not JSON")]
    return [("body", "", fault.message)]


def _of_drf(fault: exceptions.APIException) -> _Told:
    """Errors of the framework, in our words."""
    match fault:
        case exceptions.MethodNotAllowed():
            return _Told(405, "method_not_allowed", "This cannot be done here")
        case exceptions.UnsupportedMediaType():
            return _Told(415, "unsupported_media_type", "The body must be application/json")
        case exceptions.PermissionDenied():
            return _Told(403, "missing_permission", "Nobody may do this")
    logger.error("the management API failed", exc_info=fault)
    return _Told(500, "internal", "The host made a mistake; it is in its log")
