"""The forms in which people sign in: an address that was wrong too often waits, as one does that calls agents.

`lockout.py` counts by name and address; names are free, so that it never counts who tries a new one each time.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from axes.models import AccessAttempt
from django.contrib.auth.signals import user_login_failed
from django.db.models.signals import post_save
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.access import metering
from a2a_tasks.access.lockout import Attempt
from a2a_tasks.access.staff import address_of
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["MOST", "SignInForms", "install"]

#: Views that try a password, or the code of a second factor.
VIEWS = frozenset(
    {
        *("admin:login", "account_login", "account_reauthenticate"),
        *("mfa_authenticate", "mfa_reauthenticate"),
    }
)
#: Rows of attempts that are kept, the newest: django-axes removes those that are over only when somebody fails.
MOST = 10_000


class SignInForms(MiddlewareMixin):
    """Middleware. Refuses a form from an address with too many wrong ones before anything of it is tried (429)."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """The answer, if it is refused."""
        match = request.resolver_match
        if request.method != "POST" or match is None or match.view_name not in VIEWS:
            return None
        try:
            async_to_sync(metering.may_try)(address_of(request))
        except RateLimited as fault:
            answer = render(request, "locked.html", status=fault.http_status)
            answer["Retry-After"] = fault.metadata["retry_after"]
            return answer
        return None


def install() -> None:
    """Count from now on."""
    user_login_failed.connect(_failed, dispatch_uid="a2a_tasks.access.sign_in_forms")
    post_save.connect(_kept, sender=AccessAttempt, dispatch_uid="a2a_tasks.access.sign_in_forms")


def _failed(request: HttpRequest | None = None, **_: Any) -> None:
    """Of HTTP Basic the door counts (`callers`), once for all of its schemes."""
    if request is not None and not isinstance(request, Attempt):
        async_to_sync(metering.count_wrong)(address_of(request))


def _kept(instance: AccessAttempt, created: bool, **_: Any) -> None:
    if created:
        AccessAttempt.objects.filter(pk__lte=instance.pk - MOST).delete()
