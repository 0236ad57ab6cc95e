"""Staff rights from the issuer's groups. A user gets them only by a group that is named in `A2A_SSO_GROUPS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User

__all__ = ["groups_of", "make_staff"]


def groups_of(claims: Mapping[str, Any]) -> set[str]:
    """Return the groups of this host for the issuer's claims."""
    claim = claims.get(settings.SSO_GROUPS_CLAIM)
    theirs = claim if isinstance(claim, list) else []
    mapping: Mapping[str, list[str]] = settings.SSO_GROUPS
    return {ours for one in theirs if isinstance(one, str) for ours in mapping.get(one, ())}


def make_staff(user: User, names: set[str]) -> None:
    """Make the user staff with these groups, as far as they exist, and never a superuser; without groups, not staff."""
    user.is_staff, user.is_superuser = bool(names), False
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.set(Group.objects.filter(name__in=names))
