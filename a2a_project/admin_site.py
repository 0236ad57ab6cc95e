"""The site of the admin: Django's own, with tables in the order in which an operator meets them."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

__all__ = ["HostAdminSite"]

#: Tables by what one is about; those not named here follow, as Django has them.
ORDER = {
    "a2a_tasks": (
        *("Task", "Waiting", "Context", "Run", "AgentSwitch", "Worker"),
        *("ApiKey", "Grant", "AuditEntry", "Hold", "TenantRetention"),
    ),
    "a2a_push": ("Delivery", "Receiver", "PushConfig", "Attempt"),
}
#: Apps whose own name says nothing to an operator.
NAMES = {"axes": "Lockouts"}


class HostAdminSite(AdminSite):
    """What all pages of it have in common."""

    index_title = "Overview"
    empty_value_display = "–"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The apps with their tables, for the sidebar and the front page."""
        apps = super().get_app_list(request, app_label)
        for app in apps:
            label = app["app_label"]
            app["name"] = NAMES.get(label, app["name"])
            app["models"].sort(key=lambda table: _place(label, table["object_name"]))
        return apps


def _place(app: str, table: str) -> int:
    """Where a table stands among those of its app."""
    order = ORDER.get(app, ())
    return order.index(table) if table in order else len(order)
