"""The page of the usage ledger: costs and sums over a span of days, charts, and a CSV file of the same lines."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_safe

from a2a_console.admin.widgets.charts import Chart
from a2a_console.admin.widgets.staff import demand, may_view
from a2a_console.site import page_url, site
from a2a_console.staff import of_tenants, tenants_of
from a2a_console.statistics.counts import TooMany
from a2a_console.usage.sums import (
    FIGURES,
    GROUPS,
    MAX_LINES,
    SPAN,
    UsageFilter,
    UsageLine,
    UsageSums,
    sum_usage,
)
from a2a_console.usage.table import write_csv
from a2a_tasks.agents import registry
from a2a_tasks.models import Task

__all__ = ["urls", "usage_page"]

#: The number of lines on the page; the file has more.
LINES = 100
#: The largest number of days in a chart.
CHARTED = 92
DAY = datetime.timedelta(days=1)
#: Days of other years may have none before or after them.
YEARS = range(2000, 9999)
WORDS = {"context_id": "context", "task_id": "task"}
#: The columns by which the list of tasks is narrowed, and the names of these filters.
LISTED = {
    "agent": ("agent", "agent"),
    "tenant": ("tenant", "tenant"),
    "caller": ("caller", "owner"),
    "conversation": ("context_id", "context"),
}


class UsageForm(forms.Form):
    """The query of the page. All of it is optional."""

    by = forms.ChoiceField(
        choices=[(name, name) for name in GROUPS], required=False, label="Sum by"
    )
    since = forms.DateField(required=False, label="From", widget=forms.DateInput({"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput({"type": "date"}))
    agent = forms.CharField(required=False, max_length=64, widget=forms.Select)
    model = forms.CharField(required=False, max_length=200, widget=forms.Select)
    tenant = forms.CharField(required=False, max_length=256)
    caller = forms.CharField(required=False, max_length=256)

    def offer(self, name: str, values: Iterable[str]) -> None:
        """Offer these values of a field, and the one that is given."""
        known = sorted({*values, self.data.get(name, "")} - {""})
        self.fields[name].widget.choices = [("", "all"), *((value, value) for value in known)]

    def clean(self) -> dict[str, Any]:
        """Add the last 30 days where no days are given. Days are those of UTC."""
        given = super().clean() or {}
        until = given.get("until") or timezone.now().astimezone(datetime.UTC).date()
        if until.year not in YEARS:
            raise forms.ValidationError("There are no reports of that year.")
        since = given.get("since") or until - SPAN + DAY
        if since > until:
            raise forms.ValidationError("The first day is after the last one.")
        return given | {"since": since, "until": until, "by": given.get("by") or "day"}

    def make_filter(self) -> UsageFilter:
        """Return the reports of these days, the last one included, with the given values."""
        given = self.cleaned_data
        since, until = (
            datetime.datetime.combine(day, datetime.time(), datetime.UTC)
            for day in (given["since"], given["until"] + DAY)
        )
        names = ("agent", "tenant", "caller", "model")
        equal = {name: given[name] for name in names if given[name]}
        return UsageFilter(since=since, until=until, equal=equal)


@dataclass(frozen=True)
class UsageRow:
    """A line of the table: its names with a link, its cost with the exact one, and its figures."""

    names: Sequence[str]
    url: str
    cost: str
    exact: str
    figures: Sequence[str]


@dataclass(frozen=True)
class UsagePage:
    """The context of the template."""

    form: UsageForm
    #: None = the form is wrong, or there is too much to be summed in time.
    sums: UsageSums | None
    names: Sequence[str]
    rows: Sequence[UsageRow]
    totals: Sequence[UsageRow]
    charts: Sequence[Chart]
    #: The query for the file.
    query: str
    #: Names of spans, their queries, and whether they are shown.
    presets: Sequence[tuple[str, str, bool]]
    figures: Sequence[str] = tuple(name.replace("_", " ") for name in FIGURES)


@require_safe
def usage_page(request: HttpRequest) -> HttpResponse:
    """Show the sums of usage, or send them as CSV, to users who may view tasks."""
    demand(may_view(request, Task))
    request.current_app = site.name
    query = request.GET.copy()
    is_file = query.pop("form", [""])[-1] == "csv"
    form = UsageForm(query)
    sums = _sum(request, form, MAX_LINES if is_file else LINES)
    if is_file and sums is not None:
        answer = HttpResponse(
            write_csv(form.cleaned_data["by"], sums), content_type="text/csv; charset=utf-8"
        )
        answer["Content-Disposition"] = 'attachment; filename="usage.csv"'
        return answer
    by = form.cleaned_data.get("by") or "day"
    models = _sum(request, form, LINES, by="model") if sums else None
    form.offer("agent", (agent.slug for agent in registry.agents()))
    form.offer("model", (line.key["model"] for line in models.lines) if models else ())
    page = UsagePage(
        form=form,
        sums=sums,
        names=[WORDS.get(name, name) for name in GROUPS[by] if name != "task"],
        rows=[_make_row(line, by) for line in sums.lines] if sums else [],
        totals=[_make_row(line, "") for line in sums.totals] if sums else [],
        charts=_draw(request, form) if sums else [],
        query=query.urlencode(),
        presets=list(_list_presets(query)),
    )
    context = {**site.each_context(request), "title": "Usage", "page": page}
    return render(request, "admin/a2a_tasks/usage.html", context)


def urls() -> list[URLPattern]:
    """Return the URL patterns, below the path of the admin and before its own."""
    return [path("usage/", site.admin_view(usage_page), name="a2a-usage")]


def _sum(
    request: HttpRequest, form: UsageForm, limit: int, by: str | None = None
) -> UsageSums | None:
    """Return the sums that the user may see; None if the form is wrong, or there is too much to be summed in time."""
    if not form.is_valid():
        return None
    tenants = tenants_of(request.user)
    try:
        return sum_usage(
            by or form.cleaned_data["by"],
            form.make_filter(),
            lambda rows, lookup: of_tenants(rows, tenants, f"{lookup}tenant"),
            limit=limit,
        )
    except TooMany:
        form.add_error(None, "There are too many reports to be summed in time: choose fewer days.")
        return None


def _list_presets(query: QueryDict) -> Iterator[tuple[str, str, bool]]:
    today = timezone.now().astimezone(datetime.UTC).date()
    starts = {"Today": today, "7 days": today - 6 * DAY, "This month": today.replace(day=1)}
    for name, since in starts.items():
        span = {"since": since.isoformat(), "until": today.isoformat()}
        chosen = {**query.dict(), **span}
        yield name, urlencode(chosen), query.get("since") == span["since"]


def _make_row(line: UsageLine, by: str) -> UsageRow:
    exact = "unknown" if line.cost is None else f"{line.exact_cost} {line.currency}"
    cost = exact if line.cost is None else f"{line.cost:,.2f} {line.currency}"
    names = [str(value) for name, value in line.key.items() if name != "task"]
    figures = [f"{getattr(line, name):,}" for name in FIGURES]
    return UsageRow(names, _link(line.key, by), cost, exact, figures)


def _link(key: Mapping[str, Any], by: str) -> str:
    """Return the URL of the tasks of a line, or of its sums by agent; empty for totals."""
    if by in {"task", "tree"}:
        return page_url("a2a_tasks_task_change", key["task"]) if key["task"] else ""
    if by in {"day", "model"}:
        query = (
            {"since": key["day"], "until": key["day"]} if by == "day" else {"model": key["model"]}
        )
        return f"?{urlencode(query | {'by': 'agent'})}"
    column, filter_name = LISTED.get(by, ("", ""))
    tasks = page_url("a2a_tasks_task_changelist")
    return f"{tasks}?{urlencode({filter_name: key[column]})}" if column else ""


def _draw(request: HttpRequest, form: UsageForm) -> list[Chart]:
    """Return a chart of costs by day for each currency, or of tokens if no cost is known; none for too many days."""
    wanted = form.make_filter()
    days = (wanted.until - wanted.since).days
    sums = _sum(request, form, MAX_LINES, by="day") if days <= CHARTED else None
    lines = sums.lines if sums else ()
    series = defaultdict[tuple[str, str], list[float]](lambda: [0] * days)
    for line in lines:
        number = (line.key["day"] - wanted.since.date()).days
        if line.cost is not None:
            series[line.currency, "cost"][number] += round(float(line.cost), 6)
        series["", "input"][number] += line.input_tokens
        series["", "output"][number] += line.output_tokens
    money = [
        Chart(f"Cost by day, {currency}", wanted.since, DAY, {name: values}, f" {currency}")
        for (currency, name), values in series.items()
        if currency
    ]
    tokens = {name: values for (currency, name), values in series.items() if not currency}
    return money or ([Chart("Tokens by day", wanted.since, DAY, tokens)] if tokens else [])
