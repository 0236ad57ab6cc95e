"""Django's pages: whatever is done there, the user who is signed in does it."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from a2a_tasks.access import denials
from a2a_tasks.audit import acting, request_named, staff
from a2a_tasks.caller import Caller

__all__ = ["CALLER", "acting_staff", "address_of"]

#: The attribute of a request that has its caller, if that came with credentials instead of a session.
CALLER = "a2a_caller"
Next = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def acting_staff(get_response: Next) -> Callable[[HttpRequest], HttpResponseBase] | Next:
    """Middleware, after Django's of authentication: tells the audit log who acts, and of whom was turned away (403)."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        with acting(lambda: _who(request), _named(request)):
            response: HttpResponseBase = get_response(request)
        _heed(request, response)
        return response

    async def serve_async(request: HttpRequest) -> HttpResponseBase:
        with acting(lambda: _who(request), _named(request)):
            response: HttpResponseBase = await get_response(request)
        if response.status_code == HTTPStatus.FORBIDDEN:
            await sync_to_async(_heed)(request, response)
        return response

    return serve_async if iscoroutinefunction(get_response) else serve


def address_of(request: HttpRequest) -> str:
    """Where the request comes from, as the server says."""
    return str(request.META.get("REMOTE_ADDR") or "")


def _who(request: HttpRequest) -> str:
    caller: Caller | None = getattr(request, CALLER, None)
    return staff(request.user.pk) if caller is None else caller.principal


def _named(request: HttpRequest) -> str:
    return request_named(request.headers.get("x-request-id", ""))


def _heed(request: HttpRequest, response: HttpResponseBase) -> None:
    if response.status_code == HTTPStatus.FORBIDDEN:
        caller = getattr(request, CALLER, None) or Caller(principal=_who(request))
        denials.denied(caller, None, f"page {_page(request)}", address=address_of(request))


def _page(request: HttpRequest) -> str:
    """Its path; where that names an API key, which may be erased, the path of all of its kind."""
    match = request.resolver_match
    return f"/{match.route}" if match and "prefix" in match.kwargs else request.path
