"""Names that have failed, or have to wait (`access/lockout.py`): deleting a row lets the name in again at once."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin
from django.http import HttpRequest

from a2a_tasks.admin.read_only import ReadOnlyAdmin
from a2a_tasks.admin.staff import tenants_of
from a2a_tasks.conf import conf

__all__ = ["AttemptAdmin"]


@admin.register(AccessAttempt)
class AttemptAdmin(ReadOnlyAdmin[AccessAttempt]):
    """The list of names with wrong passwords. They are of no tenant, so whoever is for some sees none."""

    list_display = ("username", "ip_address", "failures_since_start", "waits", "attempt_time")
    search_fields = ("username", "ip_address")
    fields = (*list_display, "path_info", "user_agent")
    actions = ("delete_selected",)

    @admin.display(description="has to wait", boolean=True)
    def waits(self, row: Any) -> bool:
        """Say whether it has failed too often; it waits from then on for A2A_LOGIN_WAIT_MINUTES."""
        return bool(row.failures_since_start >= conf.LOGIN_FAILURES)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Only to who is for all tenants."""
        return tenants_of(request.user) is None and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The same."""
        return tenants_of(request.user) is None and super().has_view_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The same; whoever may delete one lets it in."""
        may = request.user.has_perm("axes.delete_accessattempt")
        return tenants_of(request.user) is None and may
