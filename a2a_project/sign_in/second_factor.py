"""The second factor: required before the admin, with the same limit on failures as a password."""

from __future__ import annotations

from typing import Any

from allauth.core import context
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.utils import is_mfa_enabled
from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin

from a2a_tasks.conf import path_below

__all__ = ["CountedAgainForm", "CountedForm", "SecondFactor"]


class _LockoutForm:
    """A form for a code: a wrong one counts like a wrong password (`access/lockout.py`)."""

    user: User

    def clean_code(self) -> str:
        """Return the code, if it is right and its user is not locked."""
        credentials = {"username": self.user.get_username()}
        if not AxesProxyHandler.is_allowed(context.request, credentials):
            raise ValidationError("Too many wrong codes. Try again later.")
        try:
            code: str = super().clean_code()  # type: ignore[misc]  # of the second base class
        except ValidationError:
            user_login_failed.send(__name__, credentials=credentials, request=context.request)
            raise
        return code


class CountedForm(_LockoutForm, AuthenticateForm):  # type: ignore[misc]  # allauth is untyped
    """The form at a sign-in."""


class CountedAgainForm(_LockoutForm, ReauthenticateForm):  # type: ignore[misc]
    """The form before a signed-in user changes the credentials."""


class SecondFactor(MiddlewareMixin):
    """Middleware. Staff without a second factor must set one up before the admin, and is anonymous to the API."""

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Redirect to the page that sets up a second factor, if necessary."""
        match = request.resolver_match
        if match is None or not settings.MFA_REQUIRED:
            return None
        route = path_below(f"/{match.route}")
        page = route.startswith("/admin/") or match.url_name == "api-docs"
        if not (page or route.startswith("/api/")):
            return None
        if not request.user.is_authenticated or is_mfa_enabled(request.user):
            return None
        if page:
            return HttpResponseRedirect(reverse("mfa_activate_totp"))
        request.user = AnonymousUser()
        return None
