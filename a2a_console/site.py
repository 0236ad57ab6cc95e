"""The admin site with the pages of the console.

In the host's own project it is Django's default site, which has the tables of all apps. In any other project it is a
site of its own below A2A_PREFIX, so that the project's admin stays as it is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from a2a_tasks.conf import project

__all__ = ["GuestAdminSite", "HostAdminSite", "page_url", "site"]

#: Tables by subject; tables not named here follow in Django's order.
ORDER = {
    "a2a_tasks": (
        *("Task", "Waiting", "Context", "Run", "AgentSwitch", "Worker", "Budget", "BudgetUse"),
        *("ApiKey", "Grant", "AuditEntry", "Hold", "TenantRetention"),
    ),
    "a2a_push": ("Delivery", "Receiver", "PushConfig", "Attempt"),
}
#: Names for apps whose own name is unclear to operators.
NAMES = {"axes": "Lockouts"}


class HostAdminSite(AdminSite):
    """The common parts of all pages."""

    index_title = "Overview"
    index_template = "admin/a2a_tasks/index.html"
    empty_value_display = "–"

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps with their tables, for the sidebar and the front page."""
        apps = super().get_app_list(request, app_label)
        for app in apps:
            label = app["app_label"]
            app["name"] = NAMES.get(label, app["name"])
            app["models"].sort(key=lambda table: _place(label, table["object_name"]))
        return apps


class GuestAdminSite(HostAdminSite):
    """The site in another project. That project's own site decides who may use it, and how they sign in."""

    site_header = site_title = "A2A host"
    #: The project's own site.
    gate: AdminSite = admin.site

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether the user is staff, and may use the project's own site."""
        return super().has_permission(request) and self.gate.has_permission(request)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Send the user to the sign-in of the project's own site, or to LOGIN_URL: it may ask for more than a password."""
        back = request.GET.get(REDIRECT_FIELD_NAME) or page_url("index")
        with suppress(NoReverseMatch):
            url = reverse(f"{self.gate.name}:login")
            if url != request.path:
                return redirect_to_login(back, url)
        return redirect_to_login(back, str(settings.LOGIN_URL))


def _find() -> AdminSite:
    return admin.site if project.A2A_OWN_PROJECT else GuestAdminSite(name="a2a")


site: Any = SimpleLazyObject(_find)


def page_url(name: str, *args: object) -> str:
    """Return the URL of a page of the site, such as `index` or `a2a_tasks_task_change`."""
    return reverse(f"{site.name}:{name}", args=args)


def _place(app: str, table: str) -> int:
    """Return the position of a table within its app."""
    order = ORDER.get(app, ())
    return order.index(table) if table in order else len(order)
