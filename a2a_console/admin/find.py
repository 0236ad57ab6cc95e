"""The search of the console for rows by id, for agents and for pages, in the header and as a page of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.staff import may_view
from a2a_console.search.task_reference import parse_task_reference
from a2a_console.site import page_url, site
from a2a_push.models import Delivery
from a2a_tasks.agents import registry
from a2a_tasks.models import AgentSwitch, ApiKey, Context, Task

__all__ = ["Hit", "find", "find_page", "list_tables", "urls"]

#: The largest number of hits of one kind.
MOST = 6
LONGEST = 200
#: Follows all characters of ids.
LAST = "\U0010ffff"
#: The columns with ids whose beginnings are found along a unique index.
IDS: tuple[tuple[type[Model], str], ...] = (
    (Task, "public_id"),
    (Context, "public_id"),
    (Delivery, "webhook_id"),
    (ApiKey, "prefix"),
)
#: Characters from which on the beginning of an id is looked for.
SHORTEST = 4


@dataclass(frozen=True)
class Hit:
    """Something that was found."""

    kind: str
    text: str
    url: str


@require_safe
def find_page(request: HttpRequest) -> HttpResponse:
    """Show what the user may see of what was searched."""
    words = request.GET.get("q", "").strip()[:LONGEST].replace("\x00", "")
    context = {"title": "Find", "words": words, "hits": list(find(request, words)) if words else []}
    return render(request, "admin/a2a_tasks/find.html", {**site.each_context(request), **context})


@require_safe
def list_tables(request: HttpRequest) -> HttpResponse:
    """Show the tables of all apps, as Django's front page does."""
    context = {"title": "All tables", "tables": site.list_apps(request)}
    return render(request, "admin/a2a_tasks/tables.html", {**site.each_context(request), **context})


def urls() -> list[URLPattern]:
    """Return the URL patterns, below the path of the admin and before its own."""
    return [
        path("find/", site.admin_view(find_page), name="a2a-find"),
        path("tables/", site.admin_view(list_tables), name="a2a-tables"),
    ]


def find(request: HttpRequest, words: str) -> Iterator[Hit]:
    """Yield pages and agents by a part of their name, rows by their id or its beginning, and a search for tasks."""
    low = words.lower()
    pages = (page for group in site.get_app_list(request) for page in group["models"])
    named = (page for page in pages if low in page["name"].lower())
    for page in islice(named, MOST):
        yield Hit("page", page["name"], page["admin_url"])
    if may_view(request, AgentSwitch):
        agents = (
            agent for agent in registry.agents() if low in f"{agent.slug} {agent.name}".lower()
        )
        for agent in islice(agents, MOST):
            yield Hit(
                "agent",
                f"{agent.name} ({agent.slug})",
                page_url("a2a_tasks_agentswitch_agent", agent.slug),
            )
    if words.startswith("#"):
        rows = _rows(request, Task).filter(pk__in=parse_task_reference(words))
        yield from _list_hits(rows, "public_id")
    elif len(words) >= SHORTEST:
        for model, column in IDS:
            begins = {f"{column}__gte": words, f"{column}__lt": words + LAST}
            yield from _list_hits(_rows(request, model).filter(**begins).order_by(column), column)
    if may_view(request, Task):
        query = urlencode({"q": words})
        yield Hit(
            "tasks",
            f"Search all tasks for “{words}”",
            f"{page_url('a2a_tasks_task_changelist')}?{query}",
        )


def _rows(request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
    """Return the rows that the user may see."""
    rows: QuerySet[Any] = site.get_model_admin(model).get_queryset(request)
    return rows if may_view(request, model) else rows.none()


def _list_hits(rows: QuerySet[Any], column: str) -> Iterator[Hit]:
    meta = site.get_model_admin(rows.model).opts
    for row in rows[:MOST]:
        url = page_url(f"{meta.app_label}_{meta.model_name}_change", row.pk)
        yield Hit(str(meta.verbose_name), escape_name(getattr(row, column)), url)
