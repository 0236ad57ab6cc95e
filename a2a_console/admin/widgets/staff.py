"""The tenants whose rows a member of staff sees. The default is deny: only rows without a tenant are visible.

A group named `tenant:acme` allows acme and the tenants below it (`acme/...`). The permission `see_all_tenants` allows
all, and so does being a superuser. Other rows do not exist for the user: in lists, counts, searches, choices and URLs.
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
        """A ModelAdmin that can be subscripted at runtime, which Django's cannot."""

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
#: The prefix in the name of a group whose members see a tenant.
GROUP = "tenant:"
EVERY_TENANT = "a2a_tasks.see_all_tenants"
#: The scope that gives a key without a tenant the rows of all tenants.
EVERYTHING = "admin:read"


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


def may_view(request: HttpRequest, model: type[Model]) -> bool:
    """Return whether the user may view rows of this model, as its own admin decides."""
    return admin.site.get_model_admin(model).has_view_permission(request)


class TenantAdmin(_ModelAdmin[_M]):
    """An admin of rows that belong to tenants, the base of the pages of the host's tables."""

    #: The lookup from a row to its tenant.
    tenant_lookup = "tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[_M]:
        """Return the rows that the user sees; every page, action and choice begins here."""
        return within(super().get_queryset(request), request.user, self.tenant_lookup)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> _M:
        """Return a row that the user sees. Raises Http404 for any other, as for one that does not exist."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found


class HostWideAdmin(_ModelAdmin[_M]):
    """An admin of host-wide rows: for staff who see all tenants and have the permission of the table."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Allow only users who see all tenants."""
        return sees_all(request.user) and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Allow only users who see all tenants."""
        return sees_all(request.user) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow only users who see all tenants."""
        return sees_all(request.user) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Allow only users who see all tenants."""
        return sees_all(request.user) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: _M | None = None) -> bool:
        """Allow only users who see all tenants."""
        return sees_all(request.user) and super().has_delete_permission(request, obj)
