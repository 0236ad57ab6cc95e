"""Which tenants' rows a member of staff sees. Deny by default: those without a tenant, unless somebody said more.

A group named `tenant:acme` says acme, and what lies below it (`acme/...`); the permission `see_all_tenants` says all, as
being a superuser does. What is not seen does not exist: not in lists, counts, searches, choices, nor by its address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import admin
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from a2a_tasks.store import tenancy

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin
else:

    class _ModelAdmin(admin.ModelAdmin):
        """Django's own cannot be subscripted while running."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls


__all__ = [
    "HostWideAdmin",
    "TenantAdmin",
    "covers",
    "may_give",
    "may_see_traces",
    "may_view",
    "of_tenants",
    "sees",
    "sees_all",
    "tenants_of",
    "within",
]

_M = TypeVar("_M", bound=Model)
_User = AbstractBaseUser | AnonymousUser
#: What the name of a group begins with that lets its members see a tenant.
GROUP = "tenant:"
EVERY_TENANT = "a2a_tasks.see_all_tenants"
#: What scopes of the management API begin with.
OPERATORS = "admin:"


def tenants_of(user: _User) -> frozenset[str] | None:
    """The tenants whose rows the user sees; None = all."""
    if user.has_perm(EVERY_TENANT):  # type: ignore[union-attr]
        return None
    groups = Group.objects.filter(user=user.pk, name__startswith=GROUP)
    names = groups.values_list("name", flat=True)
    return frozenset(name.removeprefix(GROUP) for name in names) or frozenset({""})


def sees(user: _User, tenant: str) -> bool:
    """Are rows of the tenant there for the user?"""
    return covers(tenants_of(user), tenant)


def sees_all(user: _User) -> bool:
    """Are rows of all tenants there for the user?"""
    return tenants_of(user) is None


def covers(tenants: frozenset[str] | None, tenant: str) -> bool:
    """Is it one of the tenants, or below one? None = all."""
    if tenants is None or tenant in tenants:
        return True
    return any(tenant.startswith(f"{above}/") for above in tenants if above)


def may_give(
    tenants: frozenset[str] | None, held: Collection[str], tenant: str, scopes: Iterable[str]
) -> bool:
    """May who sees these tenants and holds these scopes have a key of the tenant with the scopes?

    Who sees all tenants gives any scope. Others give what they hold, since anything may have been granted to a scope; and
    none of the management API to a key without a tenant, which would see all tenants.
    """
    if tenants is None:
        return True
    hosts = not tenant and any(scope.startswith(OPERATORS) for scope in scopes)
    return covers(tenants, tenant) and not hosts and all(scope in held for scope in scopes)


def may_see_traces(tenants: frozenset[str] | None) -> bool:
    """Are traces for who sees these tenants? They tell of the host's inside, so they are not for a tenant's own people."""
    return tenants is None or tenants == frozenset({""})


def within(rows: QuerySet[_M], user: _User, lookup: str = "tenant") -> QuerySet[_M]:
    """Those rows that are there for the user. `lookup` leads from a row to its tenant."""
    return of_tenants(rows, tenants_of(user), lookup)


def of_tenants(
    rows: QuerySet[_M], tenants: frozenset[str] | None, lookup: str = "tenant"
) -> QuerySet[_M]:
    """Those rows that are of the tenants, or below one. None = all."""
    return rows if tenants is None else rows.filter(tenancy.within(tenants, lookup))


def may_view(request: HttpRequest, model: type[Model]) -> bool:
    """May the user view rows of this table, as its own pages have it?"""
    return admin.site.get_model_admin(model).has_view_permission(request)


class TenantAdmin(_ModelAdmin[_M]):
    """Pages of rows that belong to tenants. Every page of the host's tables is one."""

    #: From a row to its tenant.
    tenant_lookup = "tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[_M]:
        """Only what is there for the user; every page, action and choice begins here."""
        return within(super().get_queryset(request), request.user, self.tenant_lookup)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> _M:
        """One of them. Raises Http404 for another's as for none."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found


class HostWideAdmin(_ModelAdmin[_M]):
    """Pages of rows that are for all tenants at once: for staff that sees all of them, with the permission of the table."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As for a page of it."""
        return sees_all(request.user) and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Only if the user sees every tenant."""
        return sees_all(request.user) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only if the user sees every tenant."""
        return sees_all(request.user) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Only if the user sees every tenant."""
        return sees_all(request.user) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Only if the user sees every tenant."""
        return sees_all(request.user) and super().has_delete_permission(request, obj)
