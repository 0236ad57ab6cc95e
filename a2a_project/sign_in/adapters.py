"""The adapters of django-allauth: the users that may sign in, and their rights.

The issuer's groups give rights of staff: a user gets them only by a group that is named in `A2A_SSO_GROUPS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.shortcuts import render

from a2a_tasks.sealing import seal, unseal

__all__ = ["Accounts", "Factors", "IssuerAdapter"]


class Accounts(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Users with a password on this host: an operator makes them."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Refuse: there is no self-registration."""
        return False


class IssuerAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Users from the issuer. They are never merged with users of this host."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Update the user's rights before the sign-in: the issuer's present groups count, also for known users.

        Only sign-ins are allowed. Accounts are never connected to a signed-in user: a link, which is a GET, could ask
        for it.
        """
        if sociallogin.state.get("process") != AuthProcess.LOGIN:
            raise ImmediateHttpResponse(render(request, "not_staff.html", status=403))
        names = _groups_of(sociallogin.account.extra_data.get("id_token") or {})
        if sociallogin.is_existing:
            _make_staff(sociallogin.user, names)
        if not names:
            raise ImmediateHttpResponse(render(request, "not_staff.html", status=403))

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> User:
        """Save a user at the first sign-in."""
        user: User = super().save_user(request, sociallogin, form)
        _make_staff(user, _groups_of(sociallogin.account.extra_data["id_token"]))
        return user

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Allow new users from the issuer whose groups are named."""
        return True


class Factors(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors. Their secrets are sealed like all secrets at rest."""

    def encrypt(self, text: str) -> str:
        """Seal a secret."""
        return seal(text)

    def decrypt(self, encrypted_text: str) -> str:
        """Open a sealed secret."""
        return unseal(encrypted_text)

    def can_delete_authenticator(self, authenticator: Any) -> bool:
        """Return whether users may delete it: where a second factor is required, only an operator may."""
        return not settings.MFA_REQUIRED


def _groups_of(claims: Mapping[str, Any]) -> set[str]:
    """Return the groups of this host for the issuer's claims."""
    claim = claims.get(settings.SSO_GROUPS_CLAIM)
    theirs = claim if isinstance(claim, list) else []
    mapping: Mapping[str, list[str]] = settings.SSO_GROUPS
    return {ours for one in theirs if isinstance(one, str) for ours in mapping.get(one, ())}


def _make_staff(user: User, names: set[str]) -> None:
    """Make the user staff with these groups, as far as they exist, and never a superuser; without groups, not staff."""
    user.is_staff, user.is_superuser = bool(names), False
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.set(Group.objects.filter(name__in=names))
