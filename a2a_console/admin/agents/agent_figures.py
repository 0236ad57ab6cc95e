"""Figures of one agent: its newest tasks by version, what it cost today, and the tasks of a day that ended."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from a2a_console.admin.widgets.charts import Chart
from a2a_console.statistics.counts import PERIODS, TooMany, count_ended, limit_reads
from a2a_console.statistics.reports import STATES
from a2a_console.times import duration
from a2a_console.usage.sums import UsageFilter, UsageLine, sum_usage
from a2a_tasks.models import Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["SAMPLE", "TaskFigures", "draw_day", "read_figures", "sum_today"]

#: The number of newest tasks of which the figures are made.
SAMPLE = 500


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """Figures of the newest tasks of an agent that have ended."""

    ended: int = 0
    failed: int = 0
    #: The durations that half of the tasks, and 95 % of them, did not exceed; empty = none has ended.
    p50: str = ""
    p95: str = ""

    @property
    def error_rate(self) -> str:
        """The share of failed tasks, in percent; empty = none has ended."""
        return f"{100 * self.failed / self.ended:.1f} %" if self.ended else ""


def read_figures(slug: str, own_version: str) -> Mapping[str, TaskFigures]:
    """Return the figures of each version, and under "" those of all. The empty version of a conversation is the host's own."""
    rows = Task.objects.filter(agent=slug).order_by("-pk")
    columns = ("state", "created_at", "status_at", "context__version")
    groups = defaultdict[str, list[tuple[str, datetime.timedelta]]](list)
    for state, began, ended, version in rows.values_list(*columns)[:SAMPLE]:
        if state in TERMINAL:
            for group in {"", version or own_version}:
                groups[group].append((state, ended - began))
    return {version: _make_figures(ones) for version, ones in groups.items()}


def _make_figures(ones: Sequence[tuple[str, datetime.timedelta]]) -> TaskFigures:
    spans = sorted(span for _, span in ones)
    failed = sum(state == TaskState.FAILED for state, _ in ones)
    middle, high = (duration(spans[int(share * (len(spans) - 1))]) for share in (0.5, 0.95))
    return TaskFigures(len(ones), failed, middle, high)


def sum_today(slug: str) -> Sequence[UsageLine] | None:
    """Return the usage of the agent since midnight UTC, a line for each currency; None if it takes too long to be summed."""
    today = (
        timezone.now().astimezone(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    )
    wanted = UsageFilter(
        since=today, until=today + datetime.timedelta(days=1), equal={"agent": slug}
    )
    with suppress(TooMany):
        return sum_usage("agent", wanted, lambda rows, _: rows, limit=10).totals
    return None


def draw_day(slug: str) -> Chart | None:
    """Return the chart of the tasks of a day that ended; None if it takes too long to count them."""

    def narrow(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
        return rows.filter(**{f"{by}agent": slug})

    period = PERIODS["day"]
    since = period.begin(timezone.now())
    with suppress(TooMany), limit_reads():
        slots = count_ended(period, since, narrow).slots
        series = {one.word: [slots[at, one] for at in period.list_slots(since)] for one in STATES}
        return Chart("Tasks that ended", since, period.step, series)
    return None
