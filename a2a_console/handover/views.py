"""The page of a one-time handover of secrets, for the holder of the link, signed in or not.

GET has the token in its path, POST in its body, because refused requests are logged with their path. No response
contains anything of the secrets.
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

from a2a_console.handover import hand_over
from a2a_console.handover.hand_over import UselessLink
from a2a_tasks.access.rate_limits import count_wrong, may_try
from a2a_tasks.access.staff import address_of
from a2a_tasks.protocol.errors import A2AError, InvalidParams
from a2a_tasks.store.handed_secrets import SecretRequest

__all__ = ["receive_secrets", "page"]

#: The largest number of characters of a token; no token of this host is longer.
MAX_LENGTH = 100


@never_cache
@require_GET
def page(request: HttpRequest, token: str) -> HttpResponse:
    """Show the agent that asks, the names of the secrets, and the form."""
    try:
        return _form(request, token, _find_request(request, token))
    except UselessLink:
        return _useless(request)
    except A2AError as fault:
        return _later(request, fault)


@never_cache
@sensitive_post_parameters()
@require_POST
def receive_secrets(request: HttpRequest) -> HttpResponse:
    """Store the posted secrets. If one is missing, show the form again, without the secrets."""
    token = request.POST.get("token", "")
    try:
        asking = _find_request(request, token)
        try:
            async_to_sync(hand_over.hand_over)(token, _read_values(request.POST, asking))
        except InvalidParams as fault:
            return _form(request, token, asking, fault)
    except UselessLink:
        return _useless(request)
    except A2AError as fault:
        return _later(request, fault)
    return _answer(request, {"handed": True})


def _read_values(form: Mapping[str, str], asking: SecretRequest) -> dict[str, str]:
    """Return the values of the single-line or the multi-line fields, with LF for the CR LF of browsers."""
    given = {}
    for number, name in enumerate(asking.names):
        lines = form.get(f"lines-{number}", "").replace("\r\n", "\n")
        given[name] = lines or form.get(f"secret-{number}", "")
    return given


def _find_request(request: HttpRequest, token: str) -> SecretRequest:
    """Return the request. Raises UselessLink, which counts as a wrong credential; RateLimited, Overloaded."""
    address = address_of(request)
    async_to_sync(may_try)(address)
    try:
        return async_to_sync(hand_over.find_request)(token[:MAX_LENGTH])
    except UselessLink:
        async_to_sync(count_wrong)(address)
        raise


def _form(
    request: HttpRequest, token: str, asking: SecretRequest, fault: InvalidParams | None = None
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
    """Return the same answer for a link that was used, expired, or never existed."""
    return _answer(request, {"useless": True}, HTTPStatus.NOT_FOUND)


def _later(request: HttpRequest, fault: A2AError) -> HttpResponse:
    """Return an answer after which the link still works."""
    status = HTTPStatus(fault.http_status)
    # The holder of the link cannot have caused another client error.
    if status < HTTPStatus.TOO_MANY_REQUESTS:
        status = HTTPStatus.SERVICE_UNAVAILABLE
    answer = _answer(request, {"fault": fault.message}, status)
    answer.headers["Retry-After"] = fault.metadata.get("retry_after", "5")
    return answer


def _answer(
    request: HttpRequest, shown: dict[str, Any], status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    answer = render(request, "a2a_console/handover.html", shown, status=status)
    answer._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001 - or Django logs the token in the path
    return answer
