"""The page of the usage ledger: sums over a span of days, a chart, and a CSV file of the same lines."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils import timezone
from django.views.decorators.http import require_safe

from a2a_console.admin.widgets.charts import Chart, draw_bars
from a2a_console.admin.widgets.staff import may_view
from a2a_console.site import site
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
from a2a_console.usage.table import describe_cost, list_columns, write_csv
from a2a_tasks.models import Task

__all__ = ["urls", "usage_page"]

#: The number of lines on the page; the file has more.
LINES = 100
#: The largest number of days in a chart.
CHARTED = 92
DAY = datetime.timedelta(days=1)
#: Days of other years may have none before or after them.
YEARS = range(2000, 9999)
WORDS = {"context_id": "context", "task_id": "task", "task": "key"}


class UsageForm(forms.Form):
    """The query of the page. All of it is optional."""

    by = forms.ChoiceField(
        choices=[(name, name) for name in GROUPS], required=False, label="Sum by"
    )
    since = forms.DateField(required=False, label="From", widget=forms.DateInput({"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput({"type": "date"}))
    agent = forms.CharField(required=False, max_length=64)
    tenant = forms.CharField(required=False, max_length=256)
    caller = forms.CharField(required=False, max_length=256)
    model = forms.CharField(required=False, max_length=200)

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
class UsagePage:
    """The context of the template."""

    form: UsageForm
    #: None = the form is wrong, or there is too much to be summed in time.
    sums: UsageSums | None
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    totals: Sequence[Sequence[str]]
    chart: Chart | None
    #: The query for the file.
    query: str


@require_safe
def usage_page(request: HttpRequest) -> HttpResponse:
    """Show the sums of usage, or send them as CSV, to users who may view tasks."""
    if not may_view(request, Task):
        raise PermissionDenied
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
    page = UsagePage(
        form=form,
        sums=sums,
        columns=[WORDS.get(name, name.replace("_", " ")) for name in list_columns(by)],
        rows=[_write_row(line) for line in sums.lines] if sums else [],
        totals=[_write_row(line) for line in sums.totals] if sums else [],
        chart=_draw(request, form) if sums else None,
        query=query.urlencode(),
    )
    context = {**site.each_context(request), "title": "Usage of models", "page": page}
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


def _write_row(line: UsageLine) -> list[str]:
    figures = [f"{getattr(line, name):,}" for name in FIGURES]
    cost = "unknown" if line.cost is None else describe_cost(line.cost)
    return [*(str(value) for value in line.key.values()), *figures, cost, line.currency]


def _draw(request: HttpRequest, form: UsageForm) -> Chart | None:
    """Return the chart of tokens by day; None for too many days."""
    wanted = form.make_filter()
    days = (wanted.until - wanted.since).days
    sums = _sum(request, form, MAX_LINES, by="day") if days <= CHARTED else None
    if sums is None:
        return None
    series: Mapping[str, list[int]] = {"input": [0] * days, "output": [0] * days}
    for line in sums.lines:
        number = (line.key["day"] - wanted.since.date()).days
        series["input"][number] += line.input_tokens
        series["output"][number] += line.output_tokens
    return draw_bars("Tokens", wanted.since, DAY, series)
