"""The page Connect: lines to paste into clients of every protocol, for an agent of this host."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from a2a_console.admin.widgets.staff import demand, may_view
from a2a_console.connect import find_target
from a2a_console.site import page_url, site
from a2a_tasks.agents import registry
from a2a_tasks.conf import conf
from a2a_tasks.models import AgentSwitch, ApiKey

__all__ = ["urls"]


@require_safe
def connect_page(request: HttpRequest) -> HttpResponse:
    """Show the lines for an agent, by default that of the root, to users who may view agents."""
    demand(may_view(request, AgentSwitch))
    request.current_app = site.name
    agents = registry.agents()
    wanted = {request.GET.get("agent", ""): 0, str(conf.DEFAULT_AGENT): 1}
    agent = min(agents, key=lambda one: wanted.get(one.slug, 2), default=None)
    context = {
        **site.each_context(request),
        "title": "Connect",
        "agents": agents,
        "target": find_target(request, agent) if agent else None,
        "keys": page_url("a2a_tasks_apikey_add") if may_view(request, ApiKey) else "",
    }
    return render(request, "admin/a2a_tasks/connect.html", context)


def urls() -> list[URLPattern]:
    """Return the URL patterns, below the path of the admin and before its own."""
    return [path("connect/", site.admin_view(connect_page), name="a2a-connect")]
