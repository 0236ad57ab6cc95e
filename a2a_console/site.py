"""The admin site with the pages of the console.

In the host's own project it is Django's default site, which has the tables of all apps. In any other project it is a
site of its own below A2A_PREFIX, so that the project's admin stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import NoReverseMatch, path, reverse
from django.utils.functional import SimpleLazyObject

from a2a_tasks.conf import conf, project

__all__ = ["PAGES", "GuestAdminSite", "HostAdminSite", "page_url", "site"]

SPRITE = "a2a_console/vendor/lucide-1.62.0.svg"
#: The groups of the sidebar by the work of people, with the tables for it, each with its icon.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Operate": {
        "Task": "list-checks",
        "Waiting": "inbox",
        "AgentSwitch": "bot",
        "Worker": "server",
        "BulkJob": "layers",
    },
    "Webhooks": {"Receiver": "webhook", "Delivery": "send"},
    "Cost": {"Budget": "wallet"},
    "Access": {"ApiKey": "key-round", "Grant": "shield-check", "User": "users"},
    "Compliance": {"AuditEntry": "scroll-text", "Hold": "lock", "TenantRetention": "archive"},
}
#: Names of tables in the sidebar that say more than those of their rows.
PAGES = {
    "ApiKey": "Keys",
    "AuditEntry": "Audit log",
    "Receiver": "Endpoints",
    "TenantRetention": "Retention",
}
#: Names for apps whose own name is unclear to operators.
NAMES = {"axes": "Lockouts"}
#: Colours of the name of the installation in the header, by its beginning.
TONES = {"prod": "red", "stag": "amber"}


class HostAdminSite(AdminSite):
    """The common parts of all pages."""

    index_title = "Overview"
    index_template = "admin/a2a_tasks/index.html"
    empty_value_display = "–"

    def get_urls(self) -> list[Any]:
        """Add the short link to a task by its public id, which redirects to its page."""
        tasks: Any = self.get_model_admin(apps.get_model("a2a_tasks", "Task"))
        short = path("t/<path:public_id>", self.admin_view(tasks.find_view), name="task")
        return [short, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add what the header and the sidebar show."""
        name = str(conf.ENVIRONMENT_NAME)
        tones = (tone for begin, tone in TONES.items() if name.lower().startswith(begin))
        return super().each_context(request) | {
            "place": name,
            "place_tone": next(tones, "blue"),
            "icons": static(SPRITE),
        }

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the sidebar: the tables by what people do with them. Of one app: its tables, as Django has them."""
        apps = self.list_apps(request, app_label)
        if app_label is not None:
            return apps
        tables = {table["object_name"]: table for app in apps for table in app["models"]}
        groups = {
            group: [
                tables[name]
                | {"icon": icon, "name": PAGES.get(name, tables[name]["name"]), "add_url": None}
                for name, icon in icons.items()
                if name in tables
            ]
            for group, icons in GROUPS.items()
        }
        if "AgentSwitch" in tables:
            groups["Access"].insert(0, _link("Connect", "a2a-connect", "code"))
        if "Task" in tables:
            groups["Cost"].insert(0, _link("Usage", "a2a-usage", "coins"))
        groups["More"] = [_link("All tables", "a2a-tables", "table-2")]
        url = reverse("a2a_host:a2a-tables")
        return [
            {"name": name, "app_label": f"group-{name.lower()}", "app_url": url, "models": models}
            for name, models in groups.items()
            if models
        ]

    def list_apps(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the apps with all their tables."""
        apps = super().get_app_list(request, app_label)
        for app in apps:
            app["name"] = NAMES.get(app["app_label"], app["name"])
        return apps


def _link(name: str, view: str, icon: str) -> dict[str, Any]:
    """Return a line of the sidebar for a page that is not a table."""
    url = reverse(f"a2a_host:{view}")
    return {"name": name, "object_name": view, "admin_url": url, "add_url": None, "icon": icon}


class GuestAdminSite(HostAdminSite):
    """The site in another project. That project's own site decides who may use it, and how they sign in."""

    site_header = site_title = "A2A host"
    #: The project's own site.
    gate: AdminSite = admin.site

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Let the pages of the console bring their style with them."""
        return super().each_context(request) | {"is_guest": True}

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
