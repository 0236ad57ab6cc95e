"""The admin's front page: how the host does, above what the stock page has. What may be seen is that of the staff's tenants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_safe

from a2a_tasks.admin.charts import Chart, bars, lines
from a2a_tasks.admin.staff import may_view, of_tenants, tenants_of
from a2a_tasks.models import Task
from a2a_tasks.operations.figures import PERIODS, Line, Report, report
from a2a_tasks.store.figures import Beside, Number, Period, Rows, in_words

__all__ = ["figures_fragment", "front_page", "urls"]

TASKS = "a2a_tasks.task"


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A number, and the list of what it counts, if the user may view it."""

    number: Number
    url: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """Figures of another app."""

    title: str
    name: str
    tiles: list[Tile]
    chart: Chart | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """An agent or a tenant."""

    line: Line
    url: str
    took: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Page:
    """All that the template shows."""

    period: Period
    periods: list[Period]
    report: Report
    tiles: list[Tile]
    charts: list[Chart]
    agents: list[Row]
    tenants: list[Row]
    groups: list[Group]


@require_safe
def front_page(request: HttpRequest) -> HttpResponse:
    """The stock front page, with the figures for who may view tasks."""
    context = {"figures": _page(request)} if may_view(request, Task) else {}
    return admin.site.index(request, extra_context=context)


@require_safe
def figures_fragment(request: HttpRequest) -> HttpResponse:
    """The figures alone: the page asks for them again and again."""
    if not may_view(request, Task):
        raise PermissionDenied
    return render(request, "admin/a2a_tasks/figures.html", {"figures": _page(request)})


def urls() -> list[URLPattern]:
    """The addresses, below that of the admin and before its own."""
    return [
        path("", admin.site.admin_view(front_page)),
        path("figures/", admin.site.admin_view(figures_fragment), name="a2a-figures"),
    ]


def _page(request: HttpRequest) -> Page:
    period = PERIODS.get(request.GET.get("period", ""), PERIODS["hour"])
    tenants = tenants_of(request.user)
    found = report(
        period, partial(_narrow, tenants), whose=(tenants, None), of_host=tenants is None
    )
    may_see = partial(_tile, request)
    return Page(
        period=period,
        periods=list(PERIODS.values()),
        report=found,
        tiles=[may_see(number) for number in found.numbers],
        charts=_charts(found),
        agents=[_row(request, line, "agent", period) for line in found.agents],
        tenants=[_row(request, line, "tenant", period) for line in found.tenants],
        groups=[_group(request, one, found) for one in found.beside if _may(request, one.model)],
    )


def _narrow(tenants: frozenset[str] | None, rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return of_tenants(rows, tenants, f"{by}tenant")


def _charts(found: Report) -> list[Chart]:
    since, step = found.ended.since, found.period.step
    return [
        bars("ended", "Tasks that ended", since, step, found.series),
        lines("took", "How long they took", since, step, found.took),
    ]


def _group(request: HttpRequest, beside: Beside, found: Report) -> Group:
    chart = bars(beside.name, beside.title, found.ended.since, found.period.step, beside.series)
    return Group(
        title=beside.title,
        name=beside.name,
        tiles=[_tile(request, number) for number in beside.numbers],
        chart=chart if beside.series else None,
    )


def _tile(request: HttpRequest, number: Number) -> Tile:
    return Tile(number=number, url=_url(request, number.rows) if number.rows else "")


def _row(request: HttpRequest, line: Line, by: str, period: Period) -> Row:
    rows = Rows(TASKS, {by: line.name, "ended": period.name})
    return Row(
        line=line,
        url=_url(request, rows) if line.name else "",
        took=(in_words(line.p50, "s"), in_words(line.p95, "s")),
    )


def _url(request: HttpRequest, rows: Rows) -> str:
    """The list of the rows; empty if the user may not view it."""
    if not _may(request, rows.model):
        return ""
    app, _, name = rows.model.partition(".")
    return f"{reverse(f'admin:{app}_{name}_changelist')}?{urlencode(rows.query)}"


def _may(request: HttpRequest, model: str) -> bool:
    app, _, name = model.partition(".")
    return any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
