"""List filters. Their choices come from code, and each narrows along an index or within the newest rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from a2a_console.search.bounded_rows import NEWEST, newest
from a2a_console.search.key_ranges import SLACK, split
from a2a_console.statistics.counts import PERIODS
from a2a_tasks.agents import registry
from a2a_tasks.models import ALL, IS_BEHIND, IS_PARKED, WAITS_FOR_SLOT, Budget, RunStatus

__all__ = [
    "AgentFilter",
    "BudgetFilter",
    "ChoiceFilter",
    "CreatedFilter",
    "GrantedAgentFilter",
    "KeyFilter",
    "PeriodFilter",
    "NewestAgentFilter",
    "RunStatusFilter",
]

Choices = Iterable[tuple[str, str]]
Rows = QuerySet[Any]
#: The largest number of budgets among the choices of a filter.
OFFERED = 100
_LOOKS_BACK = f"(newest {NEWEST:,})"


class ChoiceFilter(SimpleListFilter):
    """A filter whose choices are known beforehand."""

    #: Values in the URL, and their words.
    offered: Choices = ()

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the choices."""
        return self.offered


class RunStatusFilter(ChoiceFilter):
    """A filter by status: queued, parked and running runs have indexes; of ended runs only the newest are searched."""

    title = f"status {_LOOKS_BACK}"
    parameter_name = "status"
    offered = (
        *((status.value, status.value) for status in RunStatus),
        ("behind", "behind another"),
        ("parked", "parked"),
    )
    WAITING = {"queued": WAITS_FOR_SLOT, "behind": IS_BEHIND, "parked": IS_PARKED}

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the status. Queued runs are those that wait for a slot."""
        status = self.value()
        if status in self.WAITING:
            return queryset.filter(self.WAITING[status])
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


class KeyFilter(SimpleListFilter):
    """A filter by a primary key from links on other pages."""

    def list_keys(self, request: HttpRequest) -> dict[str, str]:
        """Return the keys among the choices for the user, with their labels."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the keys."""
        return self.list_keys(request).items()

    def has_output(self) -> bool:
        """Return whether the filter is shown. It also is for a key that is no choice, which the list then refuses."""
        return bool(self.lookup_choices or self.value())

    def key(self) -> int | None:
        """Return the requested key; None if the text is no key."""
        text = self.value() or ""
        # The database would refuse a number that is longer than any key.
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None  # noqa: PLR2004

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the key."""
        key = self.key()
        return queryset if key is None else queryset.filter(**{self.parameter_name or "": key})


class BudgetFilter(KeyFilter):
    """A filter by budget. The choices are the first ones by name, and the requested one."""

    title = "budget"
    parameter_name = "budget"

    def list_keys(self, request: HttpRequest) -> dict[str, str]:
        """Return the budgets among the choices."""
        asked = Budget.objects.filter(pk=self.key() or 0)
        rows = [*asked, *Budget.objects.order_by("name")[:OFFERED]]
        return {str(row.pk): row.name for row in rows}


class GrantedAgentFilter(AgentFilter):
    """A filter of grants by agent, or by all agents at once."""

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the agents."""
        return [(ALL, "all agents"), *super().lookups(request, model_admin)]


class NewestAgentFilter(AgentFilter):
    """A filter by agent where no index begins with it."""

    title = f"agent {_LOOKS_BACK}"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the agent and to the newest rows."""
        return super().queryset(request, newest(queryset)) if self.value() else queryset
