"""Counts of unfinished runs and tasks, and of tasks that ended in a period by moment, agent and tenant.

Counts of unfinished rows stop at COUNTED. Tasks that ended are counted exactly, from the index `task_ended` alone, by
statements with a time limit.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import OperationalError, transaction
from django.db.models import Count, DateTimeField, Func, OuterRef, QuerySet, Subquery, Value
from django.utils import timezone

from a2a_console.times import duration
from a2a_tasks.models import IS_PARKED, WAITS_FOR_SLOT, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.backend.server import limit_statements
from a2a_tasks.store.backend.sessions import is_cut_off

__all__ = ["COUNTED", "PERIODS", "Ended", "Narrow", "Number", "Period", "RunGroup", "SlotBegin"]
__all__ += ["TooMany", "count_ended", "count_runs", "count_waiting", "limit_reads"]

#: The bound of counts of unfinished rows.
COUNTED = 10_000
#: Seconds that a statement within `limit_reads` may take.
PATIENCE = 2.0

#: Leaves the rows that a user may see. The text is the lookup of their task: `task__`.
Narrow = Callable[[QuerySet[Any], str], QuerySet[Any]]


class TooMany(Exception):
    """There is too much to be counted within PATIENCE."""


@dataclass(frozen=True, slots=True)
class Period:
    """A span up to now, in slots of one length."""

    name: str
    #: In words: "in the past 24 hours".
    words: str
    step: datetime.timedelta
    slots: int

    @property
    def seconds(self) -> float:
        """The length of a slot."""
        return self.step.total_seconds()

    def begin(self, now: datetime.datetime) -> datetime.datetime:
        """Return the begin of the first slot. Slots begin at round moments, and the last one contains `now`."""
        length = self.seconds
        last = math.floor(now.timestamp() / length) * length
        first = last - (self.slots - 1) * length
        return datetime.datetime.fromtimestamp(first, datetime.UTC)

    def list_slots(self, since: datetime.datetime) -> list[datetime.datetime]:
        """Return the begins of its slots, of which `since` is the first."""
        return [since + number * self.step for number in range(self.slots)]


PERIODS = {
    "hour": Period("hour", "in the past hour", datetime.timedelta(minutes=1), 60),
    "day": Period("day", "in the past 24 hours", datetime.timedelta(minutes=30), 48),
    "week": Period("week", "in the past 7 days", datetime.timedelta(hours=3), 56),
}


@dataclass(frozen=True, slots=True)
class Number:
    """A figure of the overview."""

    name: str
    label: str
    #: None = there is nothing to make it of.
    value: float | None
    #: The rows that it counts: a model, `app.model`, and the filters of its list in the admin. Empty = it counts no rows.
    model: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    #: "s" = seconds, "" = a count.
    unit: str = ""
    #: True if counting stops at COUNTED.
    is_bounded: bool = False
    #: True if an operator should look at it.
    is_bad: bool = False

    @property
    def text(self) -> str:
        """The figure for people; a dash if there is none, and a plus sign if it stopped at COUNTED."""
        if self.value is None:
            return "–"
        if self.unit == "s":
            return duration(datetime.timedelta(seconds=self.value))
        return f"{self.value:,.0f}{'+' * (self.is_bounded and self.value >= COUNTED)}"


class RunGroup(NamedTuple):
    """Unfinished runs of the same status, queue, agent and tenant."""

    #: queued, running or parked.
    status: str
    queue: str
    agent: str
    tenant: str
    number: int
    oldest_due: datetime.datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """Numbers of tasks that ended in a period: by begin of the slot, by agent, by tenant; and by state."""

    slots: Counter[tuple[datetime.datetime, TaskState]] = field(default_factory=Counter)
    agents: Mapping[str, Counter[TaskState]] = field(default_factory=dict)
    tenants: Mapping[str, Counter[TaskState]] = field(default_factory=dict)


def count_runs(narrow: Narrow) -> list[RunGroup]:
    """Count queued, running and parked runs, COUNTED of each at most: of queued ones those that are next."""
    queued = narrow(Run.objects.filter(WAITS_FOR_SLOT), "task__").order_by("queue", "round", "pk")
    running = narrow(Run.objects.filter(status=RunStatus.RUNNING), "task__")
    parked = narrow(Run.objects.filter(IS_PARKED), "task__")
    tenant = Subquery(Task.objects.filter(pk=OuterRef("task")).values("tenant"))
    found: list[RunGroup] = []
    for status, some in (("queued", queued), ("running", running), ("parked", parked)):
        # For a join, or a group of keys that a subquery finds, PostgreSQL may read whole tables: this reads COUNTED rows.
        due = defaultdict[tuple[str, str, str], list[datetime.datetime]](list)
        rows = some.values_list("queue", "agent", tenant, "due_at")[:COUNTED]
        for queue, agent, whose, at in rows:
            due[queue, agent, whose].append(at)
        found += (RunGroup(status, *group, len(ats), min(ats)) for group, ats in due.items())
    return found


def count_waiting(state: TaskState, narrow: Narrow) -> int:
    """Count the tasks that are in this state, COUNTED at most."""
    return narrow(Task.objects.filter(state=state), "").order_by().values("pk")[:COUNTED].count()


def count_ended(period: Period, since: datetime.datetime, narrow: Narrow) -> Ended:
    """Count the tasks that ended since the begin of the period."""
    rows = narrow(Task.objects.filter(state__in=sorted(TERMINAL), status_at__gte=since), "")
    rows = rows.order_by().annotate(slot=SlotBegin("status_at", period))
    slots = Counter[tuple[datetime.datetime, TaskState]]()
    agents, tenants = (defaultdict[str, Counter[TaskState]](Counter) for _ in range(2))
    number = Count("*")
    for slot, agent, name, count in rows.values_list("slot", "agent", "state").annotate(n=number):
        slots[slot, TaskState(name)] += count
        agents[agent][TaskState(name)] += count
    for tenant, name, count in rows.values_list("tenant", "state").annotate(n=number):
        tenants[tenant][TaskState(name)] += count
    return Ended(slots, agents, tenants)


@contextmanager
def limit_reads() -> Iterator[None]:
    """Let each statement take PATIENCE at most, on PostgreSQL. Raises TooMany for one that took longer."""
    try:
        with transaction.atomic():
            limit_statements(PATIENCE)
            yield
    except OperationalError as fault:
        if not is_cut_off(fault):
            raise
        raise TooMany from fault


class SlotBegin(Func):
    """The begin of the slot in which a moment lies."""

    function = "date_bin"
    output_field = DateTimeField()

    def __init__(self, column: str, period: Period) -> None:
        # Any begin of a slot serves as the origin.
        super().__init__(Value(period.step), column, Value(period.begin(timezone.now())))
        self._seconds = int(period.step.total_seconds())

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, Any]:
        """Slots begin at round moments: SQLite divides by their length."""
        column, params = compiler.compile(self.source_expressions[1])
        seconds = f"cast(strftime('%%s', {column}) as integer) / {self._seconds} * {self._seconds}"
        return f"datetime({seconds}, 'unixepoch')", params
