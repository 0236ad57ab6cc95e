"""The URLs that Django serves; the protocol is served without it (`routing.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from django.conf import settings
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.db import transaction
from django.urls import URLPattern, URLResolver, include, path

from a2a_console import admin as _  # noqa: F401 - registers the pages, where the project does not discover them
from a2a_console.admin import dashboard, find, usage
from a2a_console.admin.agents import connect_page
from a2a_console.handover import views as handover
from a2a_console.playground import hook, new_hook
from a2a_console.site import site
from a2a_project.favicon import favicon
from a2a_project.jwks import jwks
from a2a_project.start_page import list_agents, show_agent, start
from a2a_tasks.conf import conf, project
from a2a_tasks.signatures.keys import JWKS_PATH

Patterns = list[URLPattern | URLResolver]
pages: Patterns = [
    path("", start, name="start"),
    path("agents/", list_agents, name="agents"),
    path("agents/<slug:slug>/", show_agent, name="agent"),
    path("favicon.ico", favicon, name="favicon"),
    path(JWKS_PATH, jwks, name="jwks"),
    path("handover/", handover.receive_secrets, name="handover"),
    path("handover/<str:token>", handover.page, name="handover_page"),
    path("playground/hooks/", new_hook, name="playground-new-hook"),
    path("playground/hooks/<str:name>", hook, name="playground-hook"),
    path("api/", include("a2a_console.api.urls")),
    path("admin/", include([*dashboard.urls(), *find.urls(), *usage.urls(), *connect_page.urls()])),
]


def make_urls(admin_site: AdminSite | None = None) -> Patterns:
    """Return the patterns of all pages below A2A_PREFIX; `admin_site` is the project's own, by default Django's."""
    if admin_site is not None:
        site.gate = admin_site
    patterns: Patterns = [path("", include((pages, "a2a_host")))]
    if getattr(settings, "SIGN_IN_EXTRA", False):  # then allauth is the only way to sign in
        from allauth.account.decorators import secure_admin_login  # noqa: PLC0415 - an extra

        from a2a_project.sign_in import tables  # noqa: PLC0415

        tables.register()
        admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
        patterns.append(path("accounts/", include("a2a_project.sign_in.urls")))
    patterns.append(path("admin/", site.urls))
    _keep_out_of_transactions(patterns)
    return [path(f"{conf.PREFIX[1:]}/", include(patterns))] if conf.PREFIX else patterns


def _keep_out_of_transactions(patterns: Iterable[URLPattern | URLResolver]) -> None:
    """Exempt the pages from ATOMIC_REQUESTS: the store has transactions of its own, which would wait for that one."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            _keep_out_of_transactions(pattern.url_patterns)
        else:
            # Django's own sign-in is a method, which can have no mark.
            with suppress(AttributeError):
                transaction.non_atomic_requests(pattern.callback)


urlpatterns = make_urls() if project.A2A_OWN_PROJECT else []
