"""User names with failed sign-ins (`access/lockout.py`). Deleting a row unlocks the name at once."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin
from django.http import HttpRequest

from a2a_console.admin.widgets.deletion import CountedDeletion
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin
from a2a_console.site import site
from a2a_console.staff import tenants_of
from a2a_tasks.conf import conf

__all__ = ["SignInAttemptAdmin"]


@admin.register(AccessAttempt, site=site)
class SignInAttemptAdmin(CountedDeletion, ReadOnlyAdmin[AccessAttempt]):
    """The list of names with failed sign-ins. They have no tenant, so only users who see all tenants see the list."""

    list_display = ("username", "ip_address", "failures_since_start", "waits", "attempt_time")
    search_fields = ("username", "ip_address")
    fields = (*list_display, "path_info", "user_agent")
    actions = ("delete_selected",)

    @admin.display(description="has to wait", boolean=True)
    def waits(self, row: Any) -> bool:
        """Return whether the name is locked: after too many failures it has to wait for A2A_LOGIN_WAIT_MINUTES."""
        return bool(row.failures_since_start >= conf.LOGIN_FAILURES)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Allow only users who see all tenants."""
        return tenants_of(request.user) is None and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow only users who see all tenants."""
        return tenants_of(request.user) is None and super().has_view_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow only users who see all tenants and may delete; deleting an entry unlocks its name."""
        may = request.user.has_perm("axes.delete_accessattempt")
        return tenants_of(request.user) is None and may
