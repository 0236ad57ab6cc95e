"""Legal holds, which are laid and released here, and tenants' days of retention."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from a2a_console.admin.widgets.staff import HostWideAdmin, ModelForm, refuse
from a2a_console.site import site
from a2a_tasks.models import Hold, TenantRetention
from a2a_tasks.store import legal_holds, retention

__all__ = ["HoldAdmin", "TenantRetentionAdmin"]


class HoldForm(ModelForm[Hold]):
    """The form of a legal hold."""

    class Meta:
        model = Hold
        fields = ("kind", "name", "reason")

    def clean(self) -> dict[str, Any]:
        """Require a name, except for the default tenant. Refuse a second hold on the same object."""
        cleaned = super().clean() or {}
        if not cleaned.get("name") and cleaned.get("kind") != legal_holds.HoldKind.TENANT:
            raise ValidationError("Only a tenant may have no name.")
        same = legal_holds.in_force().filter(
            kind=cleaned.get("kind"), name=cleaned.get("name") or ""
        )
        if same.exists():
            raise ValidationError("It is held already.")
        return cleaned


@admin.register(Hold, site=site)
class HoldAdmin(HostWideAdmin[Hold]):
    """The list and the page of holds. A hold is laid and released; it cannot be edited."""

    form = HoldForm
    list_display = ("kind", "name", "reason", "by", "created_at", "released_at", "released_by")
    list_filter = ("kind", ("released_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "reason")
    ordering = ("-pk",)
    actions = ("release_selected",)

    #: A hold is a record of its object and reason, and is released.
    has_change_permission = has_delete_permission = refuse

    def has_release_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may release holds. The permission `change hold` means this and nothing else here."""
        return request.user.has_perm("a2a_tasks.change_hold")

    def save_model(self, request: HttpRequest, obj: Hold, form: Any, change: bool) -> None:
        """Write the hold."""
        row = legal_holds.lay(legal_holds.HoldKind(obj.kind), obj.name, obj.reason)
        obj.pk, obj.by = row.pk, row.by

    @admin.action(description="Release selected holds", permissions=["release"])
    def release_selected(self, request: HttpRequest, queryset: QuerySet[Hold]) -> None:
        """Release the holds."""
        ended = [row for row in queryset if legal_holds.release(row.pk)]
        for row in ended:
            self.log_change(request, row, "Released.")
        self.message_user(request, f"Released: {len(ended)}.", messages.SUCCESS)


@admin.register(TenantRetention, site=site)
class TenantRetentionAdmin(HostWideAdmin[TenantRetention]):
    """The list and the page of tenants with their own days of retention."""

    list_display = ("__str__", "days")
    fields = ("tenant", "days")
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Make the tenant of an existing row read-only: another tenant is another row."""
        return ("tenant",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Set the days, with an entry in the audit log."""
        retention.set_days(obj.tenant, obj.days)
        obj.pk = TenantRetention.objects.get(tenant=obj.tenant).pk

    def delete_model(self, request: HttpRequest, obj: TenantRetention) -> None:
        """Go back to the host's days."""
        retention.set_days(obj.tenant, None)
