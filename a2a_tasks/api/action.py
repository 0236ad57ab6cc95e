"""A route: who may, what may be asked, what is answered, said once and beside each other."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from a2a_tasks.api.door import Right
from a2a_tasks.api.problems import MEDIA_TYPE, Invalid, Problem

__all__ = ["Asked", "Shape", "Text", "View", "action"]

#: The verbs that have a body.
CHANGES = ("POST", "PATCH")
#: What an operator said, checked: the parameters of the query and the members of the body.
Asked = dict[str, Any]
Shape = type[serializers.BaseSerializer[Any]]


@dataclass(frozen=True)
class Text:
    """An answer that is a text, sent as it is made."""

    media_types: tuple[str, ...]
    #: What is in it, for OpenAPI.
    about: str


#: What any route may answer.
ALWAYS = {
    400: "The request is wrong; `errors` names what.",
    401: "No credentials, or wrong ones; `WWW-Authenticate` names the ways in.",
    403: "The scope, or the permission, is missing, and named; or the CSRF token of a session.",
    500: "A mistake of the host.",
    503: "The database is away, or busy; `Retry-After` says when to come again.",
}
SOMETIMES = {
    404: "There is no such thing for this operator.",
    409: "It is not in a state in which this can be done.",
    413: "The body is too large.",
    415: "The body is not `application/json`.",
}


#: Headers of answers.
HEADERS = [
    OpenApiParameter("WWW-Authenticate", str, OpenApiParameter.HEADER, response=[401]),
    OpenApiParameter("Retry-After", int, OpenApiParameter.HEADER, response=[503]),
]


class View(APIView):
    """One address of the API. Door, right, parser and problems are the project's settings."""

    http_method_names = ["get", "head", "post", "patch"]

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Have nobody on the way keep it: it is one operator's, and may hold a key."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "no-store")
        return final


def action(
    name: str,
    right: Right,
    answer: Shape | Text,
    *,
    query: type[serializers.Serializer[Any]] | None = None,
    body: type[serializers.Serializer[Any]] | None = None,
    status: int = 200,
    problems: tuple[int, ...] = (),
) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Make a method the one that answers: it is given what was asked, checked, and may be called by who has the right."""

    def decorate(method: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @functools.wraps(method)
        def checked(view: View, request: Request, **path: Any) -> HttpResponseBase:
            asked = _query(request, query)
            if request.method in CHANGES:
                asked |= _body(request, body)
            return method(view, request, asked, **path)

        told = _described(name, right, method, query, body, {status: answer}, problems)
        described: Callable[..., HttpResponseBase] = told(checked)
        described.right = right  # type: ignore[attr-defined]
        return described

    return decorate


def _described(
    name: str,
    right: Right,
    method: Callable[..., Any],
    query: Any,
    body: Any,
    answers: dict[Any, Any],
    problems: tuple[int, ...],
) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """What OpenAPI says of it; the text is the method's own."""
    also = (*problems, *((413, 415) if method.__name__.upper() in CHANGES else ()))
    texts = {**ALWAYS, **{status: SOMETIMES[status] for status in also}}
    faults = {
        (status, MEDIA_TYPE): OpenApiResponse(Problem, text) for status, text in texts.items()
    }
    text = inspect.getdoc(method) or ""
    permissions = " or ".join(f"`{permission}`" for permission in right.permissions)
    granted = ", or `operate` granted on the agent" if right.of_agents else ""
    return extend_schema(
        operation_id=name,
        summary=text.partition("\n")[0].rstrip("."),
        description=f"{text}\n\nScope `{right.scope}`{granted}; of staff, permission {permissions}.",
        parameters=[*([query] if query else []), *HEADERS],
        request=body,
        responses=_good(answers) | faults,
    )


def _good(answers: Mapping[int, Shape | Text]) -> dict[Any, OpenApiResponse]:
    told: dict[Any, OpenApiResponse] = {}
    for status, answer in answers.items():
        if isinstance(answer, Text):
            text = OpenApiResponse(OpenApiTypes.STR, answer.about)
            told |= {(status, media_type): text for media_type in answer.media_types}
        else:
            about = (inspect.getdoc(answer) or "").partition("\n")[0]
            told[status] = OpenApiResponse(answer, about)
    return told


def _query(request: Request, shape: type[serializers.Serializer[Any]] | None) -> Asked:
    """The parameters of the query. Raises Invalid, also for one that is not known, or comes twice."""
    fields = shape().fields if shape else {}
    said: dict[str, Any] = {}
    for name in request.query_params:
        given = request.query_params.getlist(name)
        if name not in fields:
            raise Invalid([("query", name[:100], "There is no such parameter.")])
        several = isinstance(fields[name], serializers.ListField)
        if len(given) > 1 and not several:
            raise Invalid([("query", name, "It is there more than once.")])
        said[name] = given if several else given[0]
    return _checked(shape, said, "query")


def _body(request: Request, shape: type[serializers.Serializer[Any]] | None) -> Asked:
    """The members of the body. Raises Invalid, also for one that is not known."""
    said = request.data
    if not isinstance(said, dict):
        raise Invalid([("body", "", "must be an object")])
    fields = shape().fields if shape else {}
    unknown = [name for name in said if name not in fields]
    if unknown:
        raise Invalid([("body", unknown[0][:100], "There is no such member.")])
    return _checked(shape, said, "body")


def _checked(shape: type[serializers.Serializer[Any]] | None, said: Asked, where: str) -> Asked:
    if shape is None:
        return {}
    checker = shape(data=said)
    if not checker.is_valid():
        raise Invalid((where, name, text) for name, text in _mistakes(checker.errors))
    return dict(checker.validated_data)


def _mistakes(found: Any, path: str = "") -> list[tuple[str, str]]:
    """DRF's tree of errors as a list of (path, text)."""
    if not isinstance(found, Mapping):
        return [(path, str(text)) for text in found]
    mistakes = []
    for name, below in found.items():
        inner = path if name == "non_field_errors" else f"{path}.{name}".strip(".")
        mistakes += _mistakes(below, inner)
    return mistakes
