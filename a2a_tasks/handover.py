"""The page on which a secret is handed over, once: whoever has the link may, signed in or not.

The link's token is in the path of the page that is read, and in the body of what is sent: what is refused is logged by its
path. Nothing of what was sent is ever in an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from a2a_tasks.access.metering import count_wrong, may_try
from a2a_tasks.access.staff import address_of
from a2a_tasks.operations import hand_over
from a2a_tasks.operations.hand_over import UselessLink
from a2a_tasks.protocol.errors import A2AError, InvalidParams
from a2a_tasks.store.handed import Asking

__all__ = ["handed", "page"]

#: Characters of a token, at most; more is none of ours.
LONGEST = 100


@never_cache
@require_GET
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Who asks for what, and where to put it."""
    try:
        return _form(request, token, _asking(request, token))
    except UselessLink:
        return _useless(request)
    except A2AError as fault:
        return _later(request, fault)


@never_cache
@sensitive_post_parameters()
@require_POST
def handed(request: HttpRequest) -> HttpResponse:
    """Take what was sent. The form comes again where something is missing, without what was not."""
    token = request.POST.get("token", "")
    try:
        asking = _asking(request, token)
        try:
            async_to_sync(hand_over.hand_over)(token, _given(request.POST, asking))
        except InvalidParams as fault:
            return _form(request, token, asking, fault)
    except UselessLink:
        return _useless(request)
    except A2AError as fault:
        return _later(request, fault)
    return _answer(request, {"handed": True})


def _given(said: Mapping[str, str], asking: Asking) -> dict[str, str]:
    """What was typed in a line, or in several; browsers end these with CR and LF."""
    given = {}
    for number, name in enumerate(asking.names):
        lines = said.get(f"lines-{number}", "").replace("\r\n", "\n")
        given[name] = lines or said.get(f"secret-{number}", "")
    return given


def _asking(request: HttpRequest, token: str) -> Asking:
    """Raises UselessLink, which counts as a wrong credential of the address; RateLimited, Overloaded."""
    address = address_of(request)
    async_to_sync(may_try)(address)
    try:
        return async_to_sync(hand_over.asked_by)(token[:LONGEST])
    except UselessLink:
        async_to_sync(count_wrong)(address)
        raise


def _form(
    request: HttpRequest, token: str, asking: Asking, fault: InvalidParams | None = None
) -> HttpResponse:
    wrong = dict(fault.violations) if fault else {}
    shown = {
        "token": token,
        "agent": hand_over.name_of(asking.agent),
        "asking": asking,
        "fields": [(name, wrong.get(name)) for name in asking.names],
    }
    return _answer(request, shown, HTTPStatus.BAD_REQUEST if fault else HTTPStatus.OK)


def _useless(request: HttpRequest) -> HttpResponse:
    """The same answer for a link that was used, is over, or never was."""
    return _answer(request, {"useless": True}, HTTPStatus.NOT_FOUND)


def _later(request: HttpRequest, fault: A2AError) -> HttpResponse:
    """It was not used up."""
    status = HTTPStatus(fault.http_status)
    if (
        status < HTTPStatus.TOO_MANY_REQUESTS
    ):  # of what a client may get wrong there is nothing here
        status = HTTPStatus.SERVICE_UNAVAILABLE
    answer = _answer(request, {"fault": fault.message}, status)
    answer.headers["Retry-After"] = fault.metadata.get("retry_after", "5")
    return answer


def _answer(
    request: HttpRequest, shown: dict[str, Any], status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    answer = render(request, "handover.html", shown, status=status)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001 - Django would log the path, and the token in it
    return answer
