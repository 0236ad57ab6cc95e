"""The actor of the audit log on Django's pages: the user who is signed in."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from a2a_tasks.access import auth_failures
from a2a_tasks.audit import act_as, request_id_of, staff
from a2a_tasks.caller import Caller
from a2a_tasks.conf import is_ours

__all__ = ["CALLER", "audit_staff", "address_of"]

#: The attribute of a request with its caller, if the request has credentials instead of a session.
CALLER = "a2a_caller"
Next = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def audit_staff(get_response: Next) -> Callable[[HttpRequest], HttpResponseBase] | Next:
    """Middleware, after Django's of authentication: sets the actor of the audit log, and records refusals (403)."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        with act_as(lambda: _who(request), _name_user(request)):
            response: HttpResponseBase = get_response(request)
        _record_forbidden(request, response)
        return response

    async def serve_async(request: HttpRequest) -> HttpResponseBase:
        with act_as(lambda: _who(request), _name_user(request)):
            response: HttpResponseBase = await get_response(request)
        if response.status_code == HTTPStatus.FORBIDDEN:
            await sync_to_async(_record_forbidden)(request, response)
        return response

    return serve_async if iscoroutinefunction(get_response) else serve


def address_of(request: HttpRequest) -> str:
    """Return the address of the client, as the server names it."""
    return str(request.META.get("REMOTE_ADDR") or "")


def _who(request: HttpRequest) -> str:
    caller: Caller | None = getattr(request, CALLER, None)
    return staff(request.user.pk) if caller is None else caller.principal


def _name_user(request: HttpRequest) -> str:
    return request_id_of(request.headers.get("x-request-id", ""))


def _record_forbidden(request: HttpRequest, response: HttpResponseBase) -> None:
    if response.status_code == HTTPStatus.FORBIDDEN and is_ours(request.path_info):
        caller = getattr(request, CALLER, None) or Caller(principal=_who(request))
        auth_failures.record_forbidden(
            caller, None, f"page {_page(request)}", address=address_of(request)
        )


def _page(request: HttpRequest) -> str:
    """Return the path of a request, or its route if the path contains the prefix of an API key, which can be erased."""
    match = request.resolver_match
    return f"/{match.route}" if match and "prefix" in match.kwargs else request.path
