"""List filters. Their choices come from code, and each narrows along an index or within the newest rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from a2a_console.admin.widgets.paging import NEWEST, newest
from a2a_console.search.key_ranges import SLACK, split
from a2a_console.statistics.counts import PERIODS
from a2a_tasks.agents import registry
from a2a_tasks.models import IS_PARKED, WAITS_FOR_SLOT, RunStatus
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = [
    "AgentFilter",
    "ChoiceFilter",
    "CreatedFilter",
    "DialectFilter",
    "PeriodFilter",
    "NewestAgentFilter",
    "RunStatusFilter",
    "StateFilter",
]

Choices = Iterable[tuple[str, str]]
Rows = QuerySet[Any]
UNFINISHED = "unfinished"
_LOOKS_BACK = f"(newest {NEWEST:,})"


class ChoiceFilter(SimpleListFilter):
    """A filter whose choices are known beforehand."""

    #: Values in the URL, and their words.
    offered: Choices = ()

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the choices."""
        return self.offered


class StateFilter(ChoiceFilter):
    """A filter by state, or by all states before the end (index `task_admin_state`)."""

    title = "state"
    parameter_name = "state"
    offered = ((UNFINISHED, "not ended"), *((state.word, state.word) for state in TaskState))

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the state."""
        if self.value() == UNFINISHED:
            return queryset.filter(state__in=sorted(set(TaskState) - TERMINAL))
        states = [state for state in TaskState if state.word == self.value()]
        return queryset.filter(state=states[0]) if states else queryset


class RunStatusFilter(ChoiceFilter):
    """A filter by status: queued, parked and running runs have indexes; of ended runs only the newest are searched."""

    title = f"status {_LOOKS_BACK}"
    parameter_name = "status"
    offered = (*((status.value, status.value) for status in RunStatus), ("parked", "parked"))

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the status. Queued runs are those that wait for a slot."""
        status = self.value()
        if status in {"queued", "parked"}:
            return queryset.filter(IS_PARKED if status == "parked" else WAITS_FOR_SLOT)
        if status not in RunStatus.values:
            return queryset
        running = status == RunStatus.RUNNING
        return (queryset if running else newest(queryset)).filter(status=status)


class CreatedFilter(ChoiceFilter):
    """A filter by age. The moment is first turned into a bound on the primary key (`search/key_ranges.py`)."""

    title = "created"
    parameter_name = "created"
    SPANS = {
        "hour": ("in the past hour", timedelta(hours=1)),
        "day": ("in the past 24 hours", timedelta(days=1)),
        "week": ("in the past 7 days", timedelta(days=7)),
        "month": ("in the past 30 days", timedelta(days=30)),
        "older-day": ("more than 24 hours ago", timedelta(days=1)),
        "older-week": ("more than 7 days ago", timedelta(days=7)),
        "older-month": ("more than 30 days ago", timedelta(days=30)),
    }
    offered = tuple((key, words) for key, (words, _) in SPANS.items())

    def __init__(
        self,
        request: HttpRequest,
        params: dict[str, list[str]],
        model: Any,
        model_admin: ModelAdmin[Any],
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self._all = model_admin.get_queryset(request)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the span."""
        chosen = self.value()
        if chosen not in self.SPANS:
            return queryset
        moment = timezone.now() - self.SPANS[chosen][1]
        if chosen.startswith("older"):
            _, high = split(self._all, moment + SLACK)
            return queryset.filter(pk__lte=high, created_at__lt=moment)
        low, _ = split(self._all, moment - SLACK)
        return queryset.filter(pk__gt=low, created_at__gte=moment)


class PeriodFilter(ChoiceFilter):
    """A filter by one of the dashboard's periods."""

    offered = tuple((period.name, period.words) for period in PERIODS.values())

    def since(self) -> datetime | None:
        """Return the begin of the chosen period, as the dashboard counts it; None = no period is chosen."""
        period = PERIODS.get(self.value() or "")
        return period.begin(timezone.now()) if period else None


class AgentFilter(SimpleListFilter):
    """A filter by agent (index `task_admin_agent`)."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the agents that are on, and the requested one: tasks outlive their agents."""
        slugs = {agent.slug for agent in registry.agents()} | {self.value() or ""}
        return [(slug, slug) for slug in sorted(slugs - {""})]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the agent."""
        return queryset.filter(agent=self.value()) if self.value() else queryset


class NewestAgentFilter(AgentFilter):
    """A filter by agent where no index begins with it."""

    title = f"agent {_LOOKS_BACK}"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the agent and to the newest rows."""
        return super().queryset(request, newest(queryset)) if self.value() else queryset


class DialectFilter(ChoiceFilter):
    """A filter by the dialect in which a task was created; no index serves it."""

    title = f"protocol version {_LOOKS_BACK}"
    parameter_name = "dialect"
    offered = tuple((one.code, f"{one.code} (A2A {one.title})") for one in DIALECTS.values())

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the dialect."""
        return newest(queryset).filter(origin_dialect=self.value()) if self.value() else queryset
