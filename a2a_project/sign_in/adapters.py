"""What django-allauth asks of a project: who may come, and what becomes of them."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.shortcuts import render

from a2a_project.sign_in.groups import groups_of, make_staff
from a2a_tasks.sealing import opened, seal

__all__ = ["Accounts", "Factors", "Issued"]


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Users with a password here: an operator makes them."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Nobody makes himself one."""
        return False


class Issued(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Users whom the issuer vouches for. They are never taken for a user who was here already."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Before anybody is signed in: what the issuer says now is what counts, also of who was here before.

        It is for signing in alone. An account is tied to nobody who is signed in: a link, which is a GET, could ask for it.
        """
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise ImmediateHttpResponse(render(request, "not_staff.html", status=403))
        names = groups_of(sociallogin.account.extra_data.get("id_token") or {})
        if sociallogin.is_existing:
            make_staff(sociallogin.user, names)
        if not names:
            raise ImmediateHttpResponse(render(request, "not_staff.html", status=403))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Whoever comes for the first time."""
        user: User = super().save_user(request, sociallogin, form)
        make_staff(user, groups_of(sociallogin.account.extra_data["id_token"]))
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Whom the issuer vouches for, and whose groups are named."""
        return True


class Factors(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors. Their secrets are sealed as all secrets at rest are."""

    def encrypt(self, text: str) -> str:
        """As it is kept."""
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """As it was."""
        return opened(encrypted_text)

    def can_delete_authenticator(self, authenticator: Any) -> bool:
        """Where one is required, an operator takes it away, not who has it."""
        return not settings.MFA_REQUIRED
