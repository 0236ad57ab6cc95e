"""List filters of webhooks, each along an index or within the newest rows, as those of tasks."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.http import HttpRequest
from django.utils import timezone

from a2a_push.admin.standing import Word
from a2a_push.breaker import Phase
from a2a_push.models import PushConfig, Receiver, Status
from a2a_tasks.admin.filters import AgentFilter, Choices, PeriodFilter, Rows
from a2a_tasks.admin.paging import NEWEST, newest
from a2a_tasks.admin.staff import within
from a2a_tasks.outbound import Kind

__all__ = [
    "AnswerFilter",
    "ConfigFilter",
    "ReceiverFilter",
    "SettledFilter",
    "StandingFilter",
    "StateFilter",
    "StatusFilter",
    "TaskAgentFilter",
]

LOOKS_BACK = f"among the newest {NEWEST:,}"
#: Receivers a filter offers.
OFFERED = 10
#: What a phase looks like in the JSON of a breaker; a closed one is not written.
_PHASE = {
    Word.OPEN: f'"phase":"{Phase.OPEN.value}"',
    Word.HALF_OPEN: f'"phase":"{Phase.HALF_OPEN.value}"',
}


class StatusFilter(SimpleListFilter):
    """By status: pending and dead ones have indexes (`delivery_pending`, `delivery_dead`)."""

    title = f"status, delivered and cancelled ones {LOOKS_BACK}"
    parameter_name = "status"
    INDEXED = frozenset({Status.PENDING, Status.DEAD})

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the statuses."""
        return [(status.value, status.value) for status in Status]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the status."""
        status = self.value()
        if status not in Status.values:
            return queryset
        return (queryset if status in self.INDEXED else newest(queryset)).filter(status=status)


class SettledFilter(PeriodFilter):
    """By when it was settled (index `delivery_settled`)."""

    title = "settled"
    parameter_name = "settled"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to what was settled in the period."""
        since = self.since()
        return queryset if since is None else queryset.filter(settled_at__gte=since)


class TaskAgentFilter(AgentFilter):
    """By the agent of the task, which no index begins with."""

    title = f"agent, {LOOKS_BACK}"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the agent and to the newest rows."""
        return newest(queryset).filter(task__agent=self.value()) if self.value() else queryset


class _KeyFilter(SimpleListFilter):
    """By a key, which links on other pages give."""

    def known(self, request: HttpRequest) -> dict[str, str]:
        """Keys that are offered to the user, with their names."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List what is offered."""
        return self.known(request).items()

    def has_output(self) -> bool:
        """Say whether it is to be shown; also for a key that is not offered, which the list then refuses."""
        return bool(self.lookup_choices or self.value())

    def key(self) -> int | None:
        """The key asked for, if it is one."""
        text = self.value() or ""
        # Longer than any key; the database would refuse it.
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None  # noqa: PLR2004

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the key."""
        key = self.key()
        return queryset if key is None else queryset.filter(**{self.parameter_name or "": key})


class ReceiverFilter(_KeyFilter):
    """By receiver (index `delivery_of_receiver`): the one asked for, and the newest that are in trouble."""

    title = "receiver"
    parameter_name = "receiver"

    def known(self, request: HttpRequest) -> dict[str, str]:
        """The one asked for, then those that nothing, or little, is sent to."""
        mine = within(Receiver.objects.all(), request.user)
        asked = mine.filter(pk=self.key() or 0)
        troubled = newest(mine).exclude(disabled_at=None, probe_at=None)
        rows = [*asked, *troubled.order_by("-pk")[:OFFERED]]
        return {str(row.pk): _told(row) for row in rows}


def _told(row: Receiver) -> str:
    """Its address, and whose it is: each tenant has one of its own there."""
    return f"{row.address[:80]} ({row.tenant[:40]})" if row.tenant else row.address[:80]


class ConfigFilter(_KeyFilter):
    """By webhook (index `delivery_of_config`): only the one asked for is offered."""

    title = "webhook"
    parameter_name = "config"

    def known(self, request: HttpRequest) -> dict[str, str]:
        """The one asked for."""
        mine = within(PushConfig.objects.all(), request.user, "task__tenant")
        rows = mine.filter(pk=self.key() or 0).only("public_id")
        return {str(row.pk): row.public_id[:80] for row in rows}


class StateFilter(SimpleListFilter):
    """Webhooks by whether they are looked at."""

    title = f"state, {LOOKS_BACK}"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the states."""
        return [("active", "active"), ("settled", "settled"), ("disabled", "disabled")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the state."""
        if self.value() == "disabled":
            return newest(queryset).exclude(disabled_reason="")
        if self.value() in {"active", "settled"}:
            active = self.value() == "active"
            return newest(queryset).filter(disabled_reason="", active=active)
        return queryset


class StandingFilter(SimpleListFilter):
    """Receivers by how they stand."""

    title = f"standing, {LOOKS_BACK}"
    parameter_name = "standing"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List the words, and those whose last attempt failed."""
        offered = [Word.DISABLED, Word.OPEN, Word.HALF_OPEN, Word.PAUSED]
        return [*((word.value, word.value) for word in offered), ("failing", "failed last")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the word."""
        word = self.value()
        if word == Word.DISABLED:
            return newest(queryset).exclude(disabled_at=None)
        if word == Word.PAUSED:
            return newest(queryset).filter(paused_until__gt=timezone.now())
        if word == "failing":
            return newest(queryset).filter(well=False).exclude(last_failure_at=None)
        if word in _PHASE:
            found = newest(queryset).filter(disabled_at=None).exclude(probe_at=None)
            return found.filter(breaker__contains=_PHASE[Word(word)])
        return queryset


class AnswerFilter(SimpleListFilter):
    """Attempts by what came of them."""

    title = f"answer, {LOOKS_BACK}"
    parameter_name = "answer"
    SPANS = {"2xx": range(200, 300), "4xx": range(400, 500), "5xx": range(500, 600)}

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Choices:
        """List classes of answers, then what kept one from coming."""
        faults = [kind.value for kind in Kind if kind is not Kind.STATUS]
        return [(word, word.replace("_", " ")) for word in (*self.SPANS, *faults)]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to the answer."""
        word = self.value() or ""
        if word in self.SPANS:
            span = self.SPANS[word]
            return newest(queryset).filter(status__gte=span.start, status__lt=span.stop)
        return newest(queryset).filter(fault=word) if word in set(Kind) else queryset
