"""Admin pages that show staff only the rows of their tenants (`a2a_console/staff.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from django.urls import URLPattern, path

from a2a_console.site import site
from a2a_console.staff import sees_all, within

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin
else:

    class _ModelAdmin(admin.ModelAdmin):
        """A ModelAdmin that can be subscripted at runtime, which Django's cannot."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls


__all__ = ["HostWideAdmin", "TenantAdmin", "may_view", "own_urls"]

_M = TypeVar("_M", bound=Model)


def may_view(request: HttpRequest, model: type[Model]) -> bool:
    """Return whether the user may view rows of this model, as its own admin decides."""
    return bool(site.get_model_admin(model).has_view_permission(request))


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


def own_urls(
    page: admin.ModelAdmin[Any], views: Mapping[str, Callable[..., Any]]
) -> list[URLPattern]:
    """Return the URLs of a model's own views, by their paths, which end with their names.

    They come before Django's own URLs, the last of which matches every path.
    """
    model = f"{page.opts.app_label}_{page.opts.model_name}"
    return [
        path(where, page.admin_site.admin_view(view), name=f"{model}_{where.split('/')[-2]}")
        for where, view in views.items()
    ]
