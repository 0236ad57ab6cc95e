"""Authentication of the management API: callers like in the protocol's bindings, staff by their admin session."""

from __future__ import annotations

from collections import Counter
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from a2a_console.api.exceptions import Forgery
from a2a_console.api.operators import READ, Operator
from a2a_console.staff import tenants_of
from a2a_tasks.access.authentication import identify
from a2a_tasks.access.credentials import PEER, Credentials, read_credential
from a2a_tasks.access.staff import CALLER
from a2a_tasks.agents.security import MUTUAL_TLS
from a2a_tasks.caller import Caller

__all__ = ["HostAuthentication"]


class HostAuthentication(BaseAuthentication):
    """The authentication of operators; the operator is then `request.auth`."""

    def authenticate(self, request: Request) -> tuple[Any, Operator] | None:
        """Try the credentials in the request, then the session, then the certificate of the connection.

        Raises the exceptions of `identify`, and Forgery.
        """
        http_request = request._request  # noqa: SLF001 - DRF's name for Django's request
        credentials = _read_credentials(http_request)
        credential = read_credential(credentials)
        if credential is None or credential.scheme == MUTUAL_TLS:
            by_session = _authenticate_session(request, http_request)
            if by_session is not None or credential is None:
                return by_session
        _refuse_other_sites(request)
        caller = async_to_sync(identify)(credentials)
        setattr(http_request, CALLER, caller)  # the audit log names the caller
        operator = Operator(
            principal=caller.principal,
            tenant=caller.tenant,
            tenants=_find_tenants(caller),
            scopes=caller.scopes,
            caller=caller,
        )
        return AnonymousUser(), operator


def _refuse_other_sites(request: Request) -> None:
    """Refuse changes from pages of other sites: browsers add passwords and certificates on their own (Fetch Metadata).

    Raises Forgery.
    """
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method not in {"GET", "HEAD"} and site not in {"none", "same-origin"}:
        raise Forgery("Another site has a browser send this")


def _read_credentials(request: HttpRequest) -> Credentials:
    """Return the credentials of a request, as the protocol's bindings read them."""
    scope = getattr(request, "scope", {})
    counted = Counter(name.decode("latin-1").lower() for name, _ in scope.get("headers", ()))
    client = scope.get("client")
    peer = scope.get(PEER, client)
    return Credentials(
        {name.lower(): text for name, text in request.headers.items()},
        peer[0] if peer else "",
        client[0] if client else "",
        [name for name, times in counted.items() if times > 1],
    )


def _find_tenants(caller: Caller) -> frozenset[str] | None:
    """Return the tenants whose rows the caller sees; None = all.

    A caller without a tenant needs `admin:read` to see rows of tenants. A user with a password then sees the same
    rows as with a session.
    """
    if caller.tenant:
        return frozenset({caller.tenant})
    if READ not in caller.scopes:
        return frozenset({""})
    kind, _, key = caller.principal.partition(":")
    if kind != "user":
        return None
    return tenants_of(get_user_model().objects.filter(pk=key).first() or AnonymousUser())


def _authenticate_session(
    request: Request, http_request: HttpRequest
) -> tuple[Any, Operator] | None:
    """Return the user of the session; None if the user is not staff. Raises Forgery without a CSRF token."""
    person = getattr(http_request, "user", None)
    if person is None or not (person.is_active and person.is_staff):
        return None
    try:
        SessionAuthentication().enforce_csrf(request)
    except PermissionDenied:
        raise Forgery("The CSRF token is missing or wrong") from None
    operator = Operator(principal=f"user:{person.pk}", tenants=tenants_of(person), person=person)
    return person, operator
