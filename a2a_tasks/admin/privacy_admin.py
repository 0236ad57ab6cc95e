"""Legal holds, and tenants' days of retention: laid, released and set here by whoever may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

from a2a_tasks.admin.staff import HostWideAdmin
from a2a_tasks.models import Hold, TenantRetention
from a2a_tasks.store import holds, retention

if TYPE_CHECKING:
    _Form = ModelForm[Hold]
else:
    _Form = ModelForm

__all__ = ["HoldAdmin", "TenantRetentionAdmin"]


class HoldForm(_Form):
    """What is held, and why."""

    class Meta:
        model = Hold
        fields = ("kind", "name", "reason")

    def clean(self) -> dict[str, Any]:
        """A name is needed but for the host's only tenant; nothing is held twice."""
        said = super().clean() or {}
        if not said.get("name") and said.get("kind") != holds.Held.TENANT:
            raise ValidationError("Only a tenant may have no name.")
        same = holds.in_force().filter(kind=said.get("kind"), name=said.get("name") or "")
        if same.exists():
            raise ValidationError("It is held already.")
        return said


@admin.register(Hold)
class HoldAdmin(HostWideAdmin[Hold]):
    """The list and the page of holds. They are laid and released; nothing else is done to them."""

    form = HoldForm
    list_display = ("kind", "name", "reason", "by", "created_at", "released_at", "released_by")
    list_filter = ("kind", ("released_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "reason")
    ordering = ("-pk",)
    actions = ("release_selected",)

    def has_change_permission(self, request: HttpRequest, obj: Hold | None = None) -> bool:
        """Refuse: a hold says what was held, and why."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Hold | None = None) -> bool:
        """Refuse: it is released instead."""
        return False

    def has_release_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may release: those who were given `change hold`, which means nothing else here."""
        return request.user.has_perm("a2a_tasks.change_hold")

    def save_model(self, request: HttpRequest, obj: Hold, form: Any, change: bool) -> None:
        """Lay the hold."""
        row = holds.lay(holds.Held(obj.kind), obj.name, obj.reason)
        obj.pk, obj.by = row.pk, row.by

    @admin.action(description="Release selected holds", permissions=["release"])
    def release_selected(self, request: HttpRequest, queryset: QuerySet[Hold]) -> None:
        """End them."""
        ended = [row for row in queryset if holds.release(row.pk)]
        for row in ended:
            self.log_change(request, row, "Released.")
        self.message_user(request, f"Released: {len(ended)}.", messages.SUCCESS)


@admin.register(TenantRetention)
class TenantRetentionAdmin(HostWideAdmin[TenantRetention]):
    """The list and the page of tenants with days of their own."""

    list_display = ("__str__", "days")
    fields = ("tenant", "days")
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Another tenant is another row."""
        return ("tenant",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Set the days."""
        retention.set_days(obj.tenant, obj.days)
        obj.pk = TenantRetention.objects.get(tenant=obj.tenant).pk

    def delete_model(self, request: HttpRequest, obj: TenantRetention) -> None:
        """Go back to the host's days."""
        retention.set_days(obj.tenant, None)
