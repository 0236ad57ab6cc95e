"""Rate limits of the sign-in forms: an address with too many wrong passwords waits, as it does for calls of agents.

`lockout.py` counts by name and address, so it never stops a client that tries a new name each time.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.auth.signals import user_login_failed
from django.db.models import Model
from django.db.models.signals import post_save
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.access import rate_limits
from a2a_tasks.access.lockout import SignInAttempt
from a2a_tasks.access.staff import address_of
from a2a_tasks.protocol.errors import RateLimited

__all__ = ["MAX_COUNT", "SignInForms", "install"]

#: Views that check a password, or the code of a second factor.
VIEWS = frozenset(
    {
        *("admin:login", "account_login", "account_reauthenticate"),
        *("mfa_authenticate", "mfa_reauthenticate"),
    }
)
#: Rows of attempts that are kept, the newest: django-axes deletes expired rows only at the next failed sign-in.
MAX_COUNT = 10_000


class SignInForms(MiddlewareMixin):
    """Middleware that refuses forms from an address with too many forms, or too many wrong ones (429).

    It does so before the password is hashed.
    """

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Return the response, if the form is refused."""
        match = request.resolver_match
        if request.method != "POST" or match is None or match.view_name not in VIEWS:
            return None
        try:
            async_to_sync(rate_limits.may_sign_in)(address_of(request))
        except RateLimited as fault:
            answer = render(request, "a2a_tasks/locked.html", status=fault.http_status)
            answer["Retry-After"] = fault.metadata["retry_after"]
            return answer
        return None


def install() -> None:
    """Connect the signals."""
    user_login_failed.connect(_on_failure, dispatch_uid="a2a_tasks.access.sign_in_forms")
    if apps.is_installed("axes"):
        attempts = apps.get_model("axes", "AccessAttempt")
        post_save.connect(
            _on_attempt, sender=attempts, dispatch_uid="a2a_tasks.access.sign_in_forms"
        )


def _on_failure(request: HttpRequest | None = None, **_: Any) -> None:
    """Count a wrong password in a form; `authentication` counts those of HTTP Basic, with all of its schemes."""
    if request is not None and not isinstance(request, SignInAttempt):
        async_to_sync(rate_limits.count_wrong)(address_of(request))


def _on_attempt(sender: Any, instance: Model, created: bool, **_: Any) -> None:
    if created:
        sender.objects.filter(pk__lte=instance.pk - MAX_COUNT).delete()
