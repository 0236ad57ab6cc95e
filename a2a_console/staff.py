"""The tenants whose rows a member of staff sees. The default is deny: only rows without a tenant are visible.

A group named `tenant:acme` allows acme and the tenants below it (`acme/...`). The permission `see_all_tenants` allows
all, and so does being a superuser. Other rows do not exist for the user: in lists, counts, searches, choices and URLs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.db.models import Model, QuerySet

from a2a_tasks.store import tenancy

__all__ = [
    "covers",
    "may_give",
    "may_see_traces",
    "name_lookup",
    "of_tenants",
    "sees",
    "sees_all",
    "tenants_of",
    "within",
]

_M = TypeVar("_M", bound=Model)
_User = AbstractBaseUser | AnonymousUser
#: The prefix in the name of a group whose members see a tenant.
GROUP = "tenant:"
EVERY_TENANT = "a2a_tasks.see_all_tenants"
#: The scope that gives a key without a tenant the rows of all tenants.
EVERYTHING = "admin:read"


def name_lookup(path: str) -> str:
    """Return the lookup of the user name behind this path: the field with which users of the project sign in."""
    return f"{path}__{get_user_model().USERNAME_FIELD}"


def tenants_of(user: _User) -> frozenset[str] | None:
    """Return the tenants whose rows the user sees; None = all."""
    if user.has_perm(EVERY_TENANT):  # type: ignore[union-attr]
        return None
    groups = Group.objects.filter(user=user.pk, name__startswith=GROUP)
    names = groups.values_list("name", flat=True)
    return frozenset(name.removeprefix(GROUP) for name in names) or frozenset({""})


def sees(user: _User, tenant: str) -> bool:
    """Return whether the user sees rows of the tenant."""
    return covers(tenants_of(user), tenant)


def sees_all(user: _User) -> bool:
    """Return whether the user sees rows of all tenants."""
    return tenants_of(user) is None


def covers(tenants: frozenset[str] | None, tenant: str) -> bool:
    """Return whether the tenant is one of the tenants, or below one; None = all."""
    if tenants is None or tenant in tenants:
        return True
    return any(tenant.startswith(f"{above}/") for above in tenants if above)


def may_give(
    tenants: frozenset[str] | None, held: Collection[str], tenant: str, scopes: Iterable[str]
) -> bool:
    """Return whether a user with these tenants and held scopes may issue a key of the tenant with the scopes.

    A user who sees all tenants may give any scope. Other users may give only scopes that they hold, since anything may
    have been granted to a scope, and not `admin:read` to a key without a tenant, which would see all tenants.
    """
    if tenants is None:
        return True
    scopes = set(scopes)
    sees_all = not tenant and EVERYTHING in scopes
    return covers(tenants, tenant) and not sees_all and scopes <= set(held)


def may_see_traces(tenants: frozenset[str] | None) -> bool:
    """Return whether a user who sees these tenants sees traces and log lines. They reveal the host's internals, so
    tenants' own staff do not.
    """
    return tenants is None or tenants == frozenset({""})


def within(rows: QuerySet[_M], user: _User, lookup: str = "tenant") -> QuerySet[_M]:
    """Return the rows that the user sees. `lookup` leads from a row to its tenant."""
    return of_tenants(rows, tenants_of(user), lookup)


def of_tenants(
    rows: QuerySet[_M], tenants: frozenset[str] | None, lookup: str = "tenant"
) -> QuerySet[_M]:
    """Return the rows of the tenants and of those below; None = all."""
    return rows if tenants is None else rows.filter(tenancy.within(tenants, lookup))
