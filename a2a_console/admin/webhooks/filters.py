"""List filters of webhooks. Each narrows along an index or within the newest rows, like those of tasks."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest

from a2a_console.admin.widgets.filters import (
    AgentFilter,
    ChoiceFilter,
    KeyFilter,
    PeriodFilter,
    Rows,
)
from a2a_console.search.bounded_rows import NEWEST, newest
from a2a_console.staff import within
from a2a_console.webhooks.configs import STATES, filter_state
from a2a_console.webhooks.receiver_health import FAILING, Word, filter_health
from a2a_push.breaker import Phase
from a2a_push.models import DeliveryStatus, PushConfig, Receiver
from a2a_tasks.outbound import FaultKind

__all__ = [
    "AnswerFilter",
    "ConfigFilter",
    "ReceiverFilter",
    "SettledFilter",
    "ReceiverHealthFilter",
    "DeliveryStateFilter",
    "StatusFilter",
    "TaskAgentFilter",
]

LOOKS_BACK = f"(newest {NEWEST:,})"
#: The largest number of receivers among the choices of a filter.
OFFERED = 10
#: The text of a phase in the JSON of a breaker; the phase of a closed breaker is not written.
_PHASE: Mapping[str, str] = {
    Word.OPEN: f'"phase":"{Phase.OPEN.value}"',
    Word.HALF_OPEN: f'"phase":"{Phase.HALF_OPEN.value}"',
}


class StatusFilter(ChoiceFilter):
    """A filter by status: pending and dead deliveries have indexes (`delivery_pending`, `delivery_dead`)."""

    title = f"status {LOOKS_BACK}"
    parameter_name = "status"
    INDEXED = frozenset({DeliveryStatus.PENDING, DeliveryStatus.DEAD})
    offered = tuple((status.value, status.value) for status in DeliveryStatus)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the status."""
        status = self.value()
        if status not in DeliveryStatus.values:
            return queryset
        return (queryset if status in self.INDEXED else newest(queryset)).filter(status=status)


class SettledFilter(PeriodFilter):
    """A filter by the moment at which a delivery was settled (index `delivery_settled`)."""

    title = "settled"
    parameter_name = "settled"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to deliveries that were settled in the period."""
        since = self.since()
        return queryset if since is None else queryset.filter(settled_at__gte=since)


class TaskAgentFilter(AgentFilter):
    """A filter by the agent of the task; no index begins with it."""

    title = f"agent {LOOKS_BACK}"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the agent and to the newest rows."""
        return newest(queryset).filter(task__agent=self.value()) if self.value() else queryset


class ReceiverFilter(KeyFilter):
    """A filter by receiver (index `delivery_of_receiver`): the requested one, and the newest ones in trouble."""

    title = "receiver"
    parameter_name = "receiver"

    def list_keys(self, request: HttpRequest) -> dict[str, str]:
        """Return the requested receiver, then receivers that are disabled or whose breaker is not closed."""
        mine = within(Receiver.objects.all(), request.user)
        asked = mine.filter(pk=self.key() or 0)
        troubled = newest(mine).exclude(disabled_at=None, probe_at=None)
        rows = [*asked, *troubled.order_by("-pk")[:OFFERED]]
        # Each tenant has its own receiver at an address.
        return {
            str(row.pk): f"{row.address[:80]} ({row.tenant[:40]})"
            if row.tenant
            else row.address[:80]
            for row in rows
        }


class ConfigFilter(KeyFilter):
    """A filter by webhook (index `delivery_of_config`). The only choice is the requested one."""

    title = "webhook"
    parameter_name = "config"

    def list_keys(self, request: HttpRequest) -> dict[str, str]:
        """Return the requested webhook."""
        mine = within(PushConfig.objects.all(), request.user, "task__tenant")
        rows = mine.filter(pk=self.key() or 0).only("public_id")
        return {str(row.pk): row.public_id[:80] for row in rows}


class DeliveryStateFilter(ChoiceFilter):
    """A filter of webhooks by state."""

    title = f"state {LOOKS_BACK}"
    parameter_name = "state"
    offered = tuple((state, state) for state in STATES)

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the state."""
        state = self.value()
        return filter_state(newest(queryset), state) if state in STATES else queryset


class ReceiverHealthFilter(ChoiceFilter):
    """A filter of receivers by health."""

    title = f"health {LOOKS_BACK}"
    parameter_name = "health"
    offered = (
        *((word.value, word.value) for word in Word if word is not Word.CLOSED),
        (FAILING, "failed last"),
    )

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the state."""
        word = self.value()
        if word not in dict(self.offered):
            return queryset
        found = filter_health(newest(queryset), word)
        phase = _PHASE.get(word)
        return found.filter(breaker__contains=phase) if phase else found


class AnswerFilter(ChoiceFilter):
    """A filter of attempts by result."""

    title = f"response {LOOKS_BACK}"
    parameter_name = "answer"
    SPANS = {"2xx": range(200, 300), "4xx": range(400, 500), "5xx": range(500, 600)}
    offered = (
        *((name, name) for name in SPANS),
        *((kind.value, kind.value.replace("_", " ")) for kind in FaultKind if kind != "status"),
    )

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the result."""
        word = self.value() or ""
        if word in self.SPANS:
            span = self.SPANS[word]
            return newest(queryset).filter(status__gte=span.start, status__lt=span.stop)
        return newest(queryset).filter(fault=word) if word in set(FaultKind) else queryset
