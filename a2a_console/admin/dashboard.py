"""The front page of the admin: notices and the statistics of the host, narrowed to the tenants of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from a2a_console.admin.attention import Notice, list_notices
from a2a_console.admin.widgets.charts import Chart
from a2a_console.admin.widgets.staff import may_view
from a2a_console.queue.budget_questions import list_questions
from a2a_console.site import SPRITE, page_url, site
from a2a_console.staff import of_tenants, tenants_of
from a2a_console.statistics.counts import PERIODS, Number, Period
from a2a_console.statistics.reports import TASKS, Line, Report, report
from a2a_console.statistics.webhooks import DELIVERIES
from a2a_console.times import duration
from a2a_push.models import Delivery
from a2a_tasks.models import Task
from a2a_tasks.store import workers

__all__ = ["front_page", "urls"]

USES = "a2a_tasks.budgetuse"


@dataclass(frozen=True)
class Tile:
    """A number, with a link to the list of the counted rows if the user may view it."""

    number: Number
    url: str


@dataclass(frozen=True)
class Row:
    """A line of a table: its name with a link, and its cells, each with whether it is bad."""

    text: str
    url: str
    cells: Sequence[tuple[object, bool]]


@dataclass(frozen=True)
class Table:
    """A table of the page."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    empty: str


@dataclass(frozen=True)
class DashboardPage:
    """The context of the template."""

    report: Report
    notices: Sequence[tuple[Notice, str]]
    tiles: Sequence[Tile]
    charts: Sequence[Chart]
    tables: Sequence[Table]
    periods: Iterable[Period] = PERIODS.values()
    icons: str = ""


@require_safe
def front_page(request: HttpRequest) -> HttpResponse:
    """Show the overview to users who may view tasks, and to others their tables."""
    context: dict[str, object] = {"tables": site.list_apps(request)}
    if may_view(request, Task):
        context = {"page": _make_page(request)}
    page: HttpResponse = site.index(request, extra_context=context)
    return page


def urls() -> list[URLPattern]:
    """Return the URL patterns, below the path of the admin and before its own."""
    return [path("", site.admin_view(front_page), name="a2a-overview")]


def _make_page(request: HttpRequest) -> DashboardPage:
    period = PERIODS.get(request.GET.get("period", ""), PERIODS["hour"])
    tenants = tenants_of(request.user)

    def narrow(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
        return of_tenants(rows, tenants, f"{by}tenant")

    found = report(period, narrow, whose=(tenants, None), of_host=tenants is None)
    webhooks = found.webhooks if may_view(request, Delivery) else None
    seen = replace(found, webhooks=webhooks)
    notices = [
        *_tell_budgets(request),
        *list_notices(request, seen, narrow, of_host=tenants is None),
    ]
    numbers = [*found.numbers, *(webhooks.numbers if webhooks else ())]
    charts = [Chart("Tasks that ended", found.since, period.step, found.series)]
    if webhooks:
        charts.append(Chart("Deliveries", found.since, period.step, webhooks.series))
    return DashboardPage(
        report=found,
        notices=[
            (one, url)
            for one in notices
            if (url := _link_list(request, one.model, one.query, one.key))
        ],
        tiles=[Tile(one, _link_list(request, one.model, one.query)) for one in numbers],
        charts=[chart for chart in charts if chart.series],
        tables=list(_make_tables(request, seen, of_host=tenants is None)),
        icons=static(SPRITE),
    )


def _tell_budgets(request: HttpRequest) -> Iterator[Notice]:
    for question in list_questions(request.user):
        text = f"The budget {question.budget.name} is used up: {question.waiting} runs wait. {question.text}"
        yield Notice(sentence=text, model=USES, key=question.use.pk)


def _make_tables(request: HttpRequest, found: Report, *, of_host: bool) -> Iterator[Table]:
    heads, none = ("Ended", "Failed", "Running", "Queued"), "No task ended, and no run is active."
    for title, by, lines in (
        ("Agents", "agent", found.agents),
        ("Tenants", "tenant", found.tenants),
    ):
        rows = [_make_row(request, line, by, found.period) for line in lines]
        yield Table(title, (by.capitalize(), *heads), rows, none)
    living = workers.list_living() if of_host else []
    columns = ("Queue", *(["Workers"] if living else []), "Running", "Queued", "Oldest due")
    rows = []
    for line in found.queues:
        serving, age = sum(one.takes(line.name) for one in living), line.oldest_due
        wait = duration(found.now - age) if age else "–"
        cells: list[tuple[object, bool]] = [(serving or "none", not serving)] if living else []
        rows.append(
            Row(
                line.name,
                _link_list(request, "a2a_tasks.worker", {}),
                [*cells, (line.running, False), (line.queued, False), (wait, False)],
            )
        )
    yield Table("Queues", columns, rows, "No run is queued or active.")
    if found.webhooks:
        made = [
            Row(
                one.receiver.address,
                _link_list(request, DELIVERIES, {"receiver": str(one.receiver.pk)}),
                [(one.delivered, False), (one.dead, one.dead > 0), (one.pending, False)],
            )
            for one in found.webhooks.receivers
        ]
        heads = ("Endpoint", "Delivered", "Dead", "Pending")
        yield Table("Endpoints", heads, made, "Nothing was sent, and nothing is pending.")


def _make_row(request: HttpRequest, line: Line, by: str, period: Period) -> Row:
    url = _link_list(request, TASKS, {by: line.name, "ended": period.name}) if line.name else ""
    cells = [
        (line.ended, False),
        (line.failed, line.failed > 0),
        (line.running, False),
        (line.queued, False),
    ]
    return Row(line.name, url, cells)


def _link_list(
    request: HttpRequest, model: str, query: Mapping[str, str], key: int | None = None
) -> str:
    """Return the URL of a list or of a row in the admin; empty if the user may not view it."""
    if not model or not may_view(request, apps.get_model(model)):
        return ""
    app, _, name = model.partition(".")
    if key is not None:
        return page_url(f"{app}_{name}_change", key)
    return f"{page_url(f'{app}_{name}_changelist')}?{urlencode(query)}"
