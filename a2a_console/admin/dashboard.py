"""The front page of the admin: statistics of the host above Django's own index, narrowed to the tenants of the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from a2a_console.admin.widgets.charts import Chart, draw_bars
from a2a_console.admin.widgets.staff import may_view
from a2a_console.site import page_url, site
from a2a_console.staff import of_tenants, tenants_of
from a2a_console.statistics.counts import PERIODS, Number, Period
from a2a_console.statistics.reports import TASKS, Line, Report, report
from a2a_console.statistics.webhooks import DELIVERIES, ReceiverLine, WebhookStatistics
from a2a_push.models import Delivery
from a2a_tasks.models import Task

__all__ = ["statistics_fragment", "front_page", "urls"]


@dataclass(frozen=True)
class Tile:
    """A number, with a link to the list of the counted rows if the user may view it."""

    number: Number
    url: str


@dataclass(frozen=True)
class DashboardRow:
    """The statistics of an agent, a tenant or a receiver, with a link to its tasks or deliveries."""

    line: Line | ReceiverLine
    url: str


@dataclass(frozen=True)
class DashboardWebhooks:
    """The part of webhooks."""

    tiles: list[Tile]
    chart: Chart
    receivers: list[DashboardRow]


@dataclass(frozen=True)
class DashboardPage:
    """The context of the template."""

    report: Report
    periods: Iterable[Period]
    tiles: list[Tile]
    chart: Chart
    agents: list[DashboardRow]
    tenants: list[DashboardRow]
    #: None = the user may not view deliveries, or there is too much to count.
    webhooks: DashboardWebhooks | None


@require_safe
def front_page(request: HttpRequest) -> HttpResponse:
    """Show Django's index, with the statistics for users who may view tasks."""
    context = {"statistics": _page(request)} if may_view(request, Task) else {}
    page: HttpResponse = site.index(request, extra_context=context)
    return page


@require_safe
def statistics_fragment(request: HttpRequest) -> HttpResponse:
    """Show the statistics alone: the page polls this view."""
    if not may_view(request, Task):
        raise PermissionDenied
    request.current_app = site.name
    return render(request, "admin/a2a_tasks/statistics.html", {"statistics": _page(request)})


def urls() -> list[URLPattern]:
    """Return the URL patterns, below the path of the admin and before its own."""
    return [
        path("", site.admin_view(front_page)),
        path("statistics/", site.admin_view(statistics_fragment), name="a2a-statistics"),
    ]


def _page(request: HttpRequest) -> DashboardPage:
    period = PERIODS.get(request.GET.get("period", ""), PERIODS["hour"])
    tenants = tenants_of(request.user)
    found = report(
        period,
        lambda rows, by: of_tenants(rows, tenants, f"{by}tenant"),
        whose=(tenants, None),
        of_host=tenants is None,
    )
    webhooks = found.webhooks if may_view(request, Delivery) else None
    return DashboardPage(
        report=found,
        periods=PERIODS.values(),
        tiles=_make_tiles(request, found.numbers),
        chart=draw_bars("Tasks that ended", found.since, period.step, found.series),
        agents=[_link_tasks(request, line, "agent", period) for line in found.agents],
        tenants=[_link_tasks(request, line, "tenant", period) for line in found.tenants],
        webhooks=_describe_webhooks(request, found, webhooks) if webhooks else None,
    )


def _make_tiles(request: HttpRequest, numbers: Iterable[Number]) -> list[Tile]:
    return [
        Tile(number, _link_list(request, number.model, number.query) if number.model else "")
        for number in numbers
    ]


def _link_tasks(request: HttpRequest, line: Line, by: str, period: Period) -> DashboardRow:
    query = {by: line.name, "ended": period.name}
    return DashboardRow(line, _link_list(request, TASKS, query) if line.name else "")


def _link_list(request: HttpRequest, model: str, query: Mapping[str, str]) -> str:
    """Return the URL of a list in the admin; empty if the user may not view it."""
    app, _, name = model.partition(".")
    if not any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change")):
        return ""
    return f"{page_url(f'{app}_{name}_changelist')}?{urlencode(query)}"


def _describe_webhooks(
    request: HttpRequest, found: Report, webhooks: WebhookStatistics
) -> DashboardWebhooks:
    receivers = (
        (line, _link_list(request, DELIVERIES, {"receiver": str(line.receiver.pk)}))
        for line in webhooks.receivers
    )
    return DashboardWebhooks(
        tiles=_make_tiles(request, webhooks.numbers),
        chart=draw_bars("Deliveries", found.since, found.period.step, webhooks.series),
        receivers=[DashboardRow(line, url) for line, url in receivers],
    )
