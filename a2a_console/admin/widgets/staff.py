"""Admin pages that show staff only the rows of their tenants (`a2a_console/staff.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from a2a_console.admin.widgets.deletion import CountedDeletion
from a2a_console.admin.widgets.paging import BoundedPaginator
from a2a_console.site import site
from a2a_console.staff import sees_all, within

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm
else:

    class _ModelAdmin(admin.ModelAdmin):
        """A ModelAdmin that can be subscripted at runtime, which Django's cannot."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls

    class ModelForm(forms.ModelForm):
        """A ModelForm of this kind."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls


__all__ = ["HostWideAdmin", "ModelForm", "TenantAdmin", "demand", "may_view", "refuse"]

_M = TypeVar("_M", bound=Model)


def may_view(request: HttpRequest, model: type[Model]) -> bool:
    """Return whether the user may view rows of this model, as its own admin decides."""
    return bool(site.get_model_admin(model).has_view_permission(request))


def demand(may: bool) -> None:
    """Raise PermissionDenied unless the user may."""
    if not may:
        raise PermissionDenied


def refuse(self: admin.ModelAdmin[Any], request: HttpRequest, obj: Any = None) -> bool:
    """Return False, as `has_add_permission` and others of an admin that lets nobody do this."""
    return False


class _WithViews(_ModelAdmin[_M]):
    """An admin with views of its own beside those of Django."""

    #: Their paths. Each ends with the name of the view: `<int:object_id>/replay/` is `replay_view`.
    own_views: Sequence[str] = ()

    def get_urls(self) -> list[URLPattern]:
        """Put the own URLs before Django's, the last of which matches every path."""
        model, found = f"{self.opts.app_label}_{self.opts.model_name}", super().get_urls()
        for where in reversed(self.own_views):
            name = where.split("/")[-2]
            view = self.admin_site.admin_view(getattr(self, f"{name}_view"))
            found.insert(0, path(where, view, name=f"{model}_{name}"))
        return found

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the page of a row with what `read_page` adds."""
        if context.get("original") is not None:
            context.update(self.read_page(request, context["original"]))
        return super().render_change_form(request, context, *args, **kwargs)

    def read_page(self, request: HttpRequest, row: _M) -> dict[str, Any]:
        """Return what the page of a row shows beside its fields."""
        return {}

    def show(
        self, request: HttpRequest, template: str, title: str, **shown: Any
    ) -> TemplateResponse:
        """Return a page of the admin."""
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": title}
        return TemplateResponse(request, f"admin/{template}.html", {**context, **shown})


class TenantAdmin(_WithViews[_M]):
    """An admin of rows that belong to tenants, the base of the pages of the host's tables."""

    #: The lookup from a row to its tenant.
    tenant_lookup = "tenant"
    paginator = BoundedPaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[_M]:
        """Return the rows that the user sees; every page, action and choice begins here."""
        return within(super().get_queryset(request), request.user, self.tenant_lookup)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> _M:
        """Return a row that the user sees. Raises Http404 for any other, as for one that does not exist."""
        found = super().get_object(request, object_id, from_field)
        if found is None:
            raise Http404
        return found


class HostWideAdmin(CountedDeletion, _WithViews[_M]):
    """An admin of host-wide rows: for staff who see all tenants and have the permission of the table."""

    paginator = BoundedPaginator
    show_full_result_count = False

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
