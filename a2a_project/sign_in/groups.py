"""Who the issuer's groups make staff. Nobody is, unless one of their groups is named in `A2A_SSO_GROUPS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User

__all__ = ["groups_of", "make_staff"]


def groups_of(claims: Mapping[str, Any]) -> set[str]:
    """The groups of ours that what the issuer said stands for."""
    said = claims.get(settings.SSO_GROUPS_CLAIM)
    theirs = said if isinstance(said, list) else []
    known: Mapping[str, list[str]] = settings.SSO_GROUPS
    return {ours for one in theirs if isinstance(one, str) for ours in known.get(one, ())}


def make_staff(user: User, names: set[str]) -> None:
    """Staff with these groups and no other, as far as they exist, and never a superuser; without any, not staff."""
    user.is_staff, user.is_superuser = bool(names), False
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.set(Group.objects.filter(name__in=names))
