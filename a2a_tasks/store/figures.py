"""How the host does, in numbers: what is under way now, and what ended in a period, by moment, agent and tenant.

All of it is read along indexes. What is unfinished is counted to a bound; what has ended is read from the index
`task_ended` alone. How long things took is counted in classes, each an eighth wider than the one before, so that the
database need not sort; percentiles are those of the classes, within some six per cent.

Other apps have figures of their own; each registers itself when it is loaded.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, FloatField, Func, Min, QuerySet
from django.db.models.functions import Floor, Greatest, Ln
from django.utils import timezone

from a2a_tasks.durations import duration
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = [
    "COUNTED",
    "PERIODS",
    "TOP",
    "Beside",
    "Closed",
    "Counts",
    "Ended",
    "Figures",
    "Narrow",
    "Number",
    "Period",
]
__all__ += [
    "Epoch",
    "Rows",
    "Series",
    "Share",
    "Slot",
    "Waiting",
    "also",
    "closed",
    "ended",
    "of_agents",
    "others",
    "percentile",
    "standing",
]

#: What is unfinished is counted so far.
COUNTED = 10_000
#: Agents, tenants and queues that are shown, those with most first.
TOP = 20
#: The last slots of a period, which are read each time: what has ended is written a moment later.
OPEN = 2
#: Classes of how long it took: so many to a factor of e, from a millisecond on.
FINENESS, SHORTEST = 8, 0.001

#: Leaves those rows of a table that there are for whoever asks; the text leads from a row to what has tenant and agent: `task__`.
Narrow = Callable[[QuerySet[Any], str], QuerySet[Any]]


@dataclass(frozen=True, slots=True)
class Period:
    """A span up to now, in slots of one length."""

    name: str
    #: In words: "in the past 24 hours".
    words: str
    step: datetime.timedelta
    slots: int

    def begin(self, now: datetime.datetime) -> datetime.datetime:
        """When the first slot begins: slots lie on round moments, and the last one has not ended."""
        length = self.step.total_seconds()
        last = math.floor(now.timestamp() / length) * length
        first = last - (self.slots - 1) * length
        return datetime.datetime.fromtimestamp(first, datetime.UTC)


PERIODS = {
    "hour": Period("hour", "in the past hour", datetime.timedelta(minutes=1), 60),
    "day": Period("day", "in the past 24 hours", datetime.timedelta(minutes=30), 48),
    "week": Period("week", "in the past 7 days", datetime.timedelta(hours=3), 56),
}


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a number counts: a model, `app.model`, and how the admin's list of it is narrowed to them."""

    model: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A figure."""

    name: str
    label: str
    #: None = there is nothing to make it of.
    value: float | None
    #: "" = a count, "s" = seconds, "%" = per cent.
    unit: str = ""
    rows: Rows | None = None
    #: Was it counted to COUNTED and no further?
    is_bounded: bool = False
    #: Should somebody look?
    is_bad: bool = False

    @property
    def text(self) -> str:
        """It, for people; those that stop at COUNTED say so."""
        more = "+" if self.is_bounded and (self.value or 0) >= COUNTED else ""
        return in_words(self.value, self.unit) + more


def in_words(value: float | None, unit: str = "") -> str:
    """A figure for people; a dash if there is none."""
    if value is None:
        return "–"
    if unit == "s":
        return duration(datetime.timedelta(seconds=value))
    return f"{value:,.1f} %" if unit == "%" else f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Series:
    """A line of numbers, one a slot; `colour` is a word of the charts' style."""

    label: str
    colour: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Figures of another app."""

    name: str
    title: str
    #: Whose rows they are of: for who may view these.
    model: str
    numbers: tuple[Number, ...]
    series: tuple[Series, ...] = ()


#: From a period, when it begins and whose rows count: figures of another app.
Ask = Callable[[Period, datetime.datetime, Narrow], Beside | None]
_asks: list[Ask] = []


def also(ask: Ask) -> None:
    """Have `ask` asked whenever somebody looks at figures."""
    if ask not in _asks:
        _asks.append(ask)


def others(period: Period, since: datetime.datetime, narrow: Narrow) -> tuple[Beside, ...]:
    """The figures of the others."""
    found = (ask(period, since, narrow) for ask in _asks)
    return tuple(beside for beside in found if beside is not None)


# --- now


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """A queue, an agent or a tenant now."""

    name: str
    running: int = 0
    queued: int = 0
    #: When the one that has waited longest was due.
    oldest_due: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """How it stands now; counts stop at COUNTED."""

    now: datetime.datetime
    running: int
    queued: int
    waiting_input: int
    waiting_credentials: int
    queues: tuple[Waiting, ...]
    agents: Mapping[str, Waiting]
    tenants: Mapping[str, Waiting]


def standing(narrow: Narrow) -> Figures:
    """Read how it stands now."""
    now = timezone.now()
    groups = [*_unfinished(narrow, RunStatus.RUNNING), *_unfinished(narrow, RunStatus.QUEUED)]
    tasks = narrow(Task.objects.all(), "")
    by_queue = _gathered(groups, "queue")
    return Figures(
        now=now,
        running=_sum(groups, RunStatus.RUNNING),
        queued=_sum(groups, RunStatus.QUEUED),
        waiting_input=_counted(tasks.filter(state=TaskState.INPUT_REQUIRED)),
        waiting_credentials=_counted(tasks.filter(state=TaskState.AUTH_REQUIRED)),
        queues=tuple(by_queue[name] for name in sorted(by_queue)),
        agents=_gathered(groups, "task__agent"),
        tenants=_gathered(groups, "task__tenant"),
    )


def _unfinished(narrow: Narrow, status: RunStatus) -> list[dict[str, Any]]:
    runs = narrow(Run.objects.filter(status=status), "task__")
    some = runs.order_by("queue", "round", "pk") if status == RunStatus.QUEUED else runs
    groups = Run.objects.filter(pk__in=some.values("pk")[:COUNTED]).order_by()
    by = ("status", "queue", "task__agent", "task__tenant")
    return list(groups.values(*by).annotate(count=Count("*"), oldest=Min("due_at")))


def _gathered(groups: Iterable[Mapping[str, Any]], by: str) -> dict[str, Waiting]:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for group in groups:
        found[group[by]].append(group)
    return {name: _waiting(name, some) for name, some in found.items()}


def _waiting(name: str, groups: list[Mapping[str, Any]]) -> Waiting:
    due = [group["oldest"] for group in groups if group["status"] == RunStatus.QUEUED]
    return Waiting(
        name=name,
        running=_sum(groups, RunStatus.RUNNING),
        queued=_sum(groups, RunStatus.QUEUED),
        oldest_due=min(due, default=None),
    )


def _sum(groups: Iterable[Mapping[str, Any]], status: RunStatus) -> int:
    return sum(group["count"] for group in groups if group["status"] == status)


def _counted(rows: QuerySet[Any]) -> int:
    return rows.values("pk")[:COUNTED].count()


# --- what has ended


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """What ended in one slot."""

    at: datetime.datetime
    counts: Mapping[TaskState, int]
    #: Seconds from a task's beginning to its end that half of them, and 95 of 100, did not take longer than.
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What ended of one agent, or of one tenant."""

    name: str
    counts: Mapping[TaskState, int]
    p50: float | None = None
    p95: float | None = None

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        """The tasks whose state is failed, wherever the host tells of failures; a rejected one is a decision of the agent."""
        return self.counts.get(TaskState.FAILED, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What ended in a period."""

    period: Period
    since: datetime.datetime
    slots: tuple[Slot, ...]
    #: All of it together.
    whole: Share
    #: The TOP of them, those with most first.
    agents: tuple[Share, ...]
    tenants: tuple[Share, ...]
    #: For whoever asks again in the same slot.
    closed: Closed


@dataclass(frozen=True, slots=True)
class Counts:
    """How many ended: by slot and by agent, state and class of how long it took; and by tenant and state."""

    slots: Counter[tuple[int, str, int]] = field(default_factory=Counter)
    agents: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    tenants: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.slots + other.slots, self.agents + other.agents, self.tenants + other.tenants
        )


@dataclass(frozen=True, slots=True)
class Closed:
    """What ended in all slots of a period but the last two, in which something may still be written."""

    since: datetime.datetime
    counts: Counts


class Epoch(Func):
    """A moment as seconds since the epoch. (PostgreSQL's `extract` makes exact numbers of them, which are slow.)"""

    output_field = FloatField()
    function = "date_part"
    template = "date_part('epoch', %(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite counts days."""
        days = "((julianday(%(expressions)s) - 2440587.5) * 86400.0)"
        return super().as_sql(compiler, connection, template=days, **context)


#: Of how long a task took.
CLASS = Floor(
    Ln(Greatest(Epoch("status_at") - Epoch("created_at"), SHORTEST, output_field=FloatField()))
    * FINENESS
)


def ended(period: Period, narrow: Narrow, known: Closed | None = None) -> Ended:
    """Read what ended in the period, in two looks at the index of ended tasks.

    `known`: what was read for the same `narrow` before; of the same slots it is not read again.
    """
    since = period.begin(timezone.now())
    if known is None or known.since != since:
        known = closed(period, since, narrow)
    counts = known.counts + _counts(period, since, _rows(narrow, _edge(period, since)))
    by_slot, by_agent = _grouped(counts.slots), _grouped(counts.agents)
    return Ended(
        period=period,
        since=since,
        slots=tuple(_slot(period, since, n, by_slot) for n in range(period.slots)),
        whole=_share("", counts.slots.items()),
        agents=_top(_share(name, some) for name, some in by_agent.items()),
        tenants=_top(_tenants(counts)),
        closed=known,
    )


def of_agents(period: Period) -> Mapping[str, Share]:
    """What ended in the period, by slug of all agents: their lines of `ended`, of all tenants."""
    since = period.begin(timezone.now())
    counts = _counts(period, since, _rows(lambda rows, _: rows, since))
    return {name: _share(name, some) for name, some in _grouped(counts.agents).items()}


def closed(period: Period, since: datetime.datetime, narrow: Narrow) -> Closed:
    """Read what ended in the slots of a period that begins then, but for the last two."""
    rows = _rows(narrow, since).filter(status_at__lt=_edge(period, since))
    return Closed(since, _counts(period, since, rows))


def _edge(period: Period, since: datetime.datetime) -> datetime.datetime:
    return since + (period.slots - OPEN) * period.step


def _rows(narrow: Narrow, since: datetime.datetime) -> QuerySet[Any]:
    return narrow(Task.objects.filter(state__in=sorted(TERMINAL), status_at__gte=since), "")


def _counts(period: Period, since: datetime.datetime, rows: QuerySet[Any]) -> Counts:
    slot = Floor((Epoch("status_at") - since.timestamp()) / period.step.total_seconds())
    placed = rows.annotate(slot=slot, quickness=CLASS).order_by()
    by = ("slot", "agent", "state", "quickness")
    found = Counts()
    for number, agent, state, quickness, count in (
        placed.values(*by).annotate(count=Count("*")).values_list(*by, "count")
    ):
        found.slots[int(number), state, int(quickness)] += count
        found.agents[agent, state, int(quickness)] += count
    for one in rows.order_by().values("tenant", "state").annotate(count=Count("*")):
        found.tenants[one["tenant"], one["state"]] += one["count"]
    return found


#: How many, by something, state and class.
_Group = Iterable[tuple[tuple[Any, str, int], int]]


def _grouped(counts: Counter[Any]) -> dict[Any, _Group]:
    found: dict[Any, list[tuple[tuple[Any, str, int], int]]] = defaultdict(list)
    for one in counts.items():
        found[one[0][0]].append(one)
    return dict(found)


def _tenants(counts: Counts) -> Iterable[Share]:
    found: dict[str, Counter[TaskState]] = defaultdict(Counter)
    for (tenant, state), count in counts.tenants.items():
        found[tenant][TaskState(state)] += count
    return [Share(name=name, counts=some) for name, some in found.items()]


def _share(name: str, group: _Group) -> Share:
    counts: Counter[TaskState] = Counter()
    classes: Counter[int] = Counter()
    for (_, state, quickness), count in group:
        counts[TaskState(state)] += count
        classes[quickness] += count
    return Share(
        name=name, counts=counts, p50=percentile(classes, 0.5), p95=percentile(classes, 0.95)
    )


def _slot(
    period: Period,
    since: datetime.datetime,
    number: int,
    groups: Mapping[Any, _Group],
) -> Slot:
    share = _share("", groups.get(number, ()))
    at = since + number * period.step
    return Slot(at=at, counts=share.counts, p50=share.p50, p95=share.p95)


def _top(shares: Iterable[Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=lambda share: (-share.total, share.name))[:TOP])


def percentile(classes: Mapping[int, int], part: float) -> float | None:
    """The seconds that this part of them did not take longer than: the middle of its class. None = there are none."""
    total = sum(classes.values())
    passed = 0
    for number in sorted(classes):
        passed += classes[number]
        if passed >= part * total:
            return math.exp((number + 0.5) / FINENESS)
    return None
