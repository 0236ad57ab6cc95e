"""The admin site: Django's own, with its tables ordered by their use for operators."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

__all__ = ["HostAdminSite"]

#: Tables by subject; tables not named here follow in Django's order.
ORDER = {
    "a2a_tasks": (
        *("Task", "Waiting", "Context", "Run", "AgentSwitch", "Worker"),
        *("ApiKey", "Grant", "AuditEntry", "Hold", "TenantRetention"),
    ),
    "a2a_push": ("Delivery", "Receiver", "PushConfig", "Attempt"),
}
#: Names for apps whose own name is unclear to operators.
NAMES = {"axes": "Lockouts"}


class HostAdminSite(AdminSite):
    """The common parts of all admin pages."""

    index_title = "Overview"
    empty_value_display = "–"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps with their tables, for the sidebar and the front page."""
        apps = super().get_app_list(request, app_label)
        for app in apps:
            label = app["app_label"]
            app["name"] = NAMES.get(label, app["name"])
            app["models"].sort(key=lambda table: _place(label, table["object_name"]))
        return apps


def _place(app: str, table: str) -> int:
    """Return the position of a table within its app."""
    order = ORDER.get(app, ())
    return order.index(table) if table in order else len(order)
