"""The facts for the diagnosis of a task: its status, its run, its place in the queue. No judgment is made here."""

from __future__ import annotations

import datetime
import enum
import json
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from a2a_tasks.agents import versions as known_versions
from a2a_tasks.agents.switches import ON, Switch
from a2a_tasks.conf import conf
from a2a_tasks.models import (
    PARKED,
    AgentVersion,
    BudgetUse,
    BudgetWindow,
    Event,
    Run,
    RunStatus,
    Step,
    Task,
    Worker,
)
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import steps, switches, workers
from a2a_tasks.store.budgets import write_amount

__all__ = [
    "COUNTED",
    "LostWorker",
    "QueuePosition",
    "RowLink",
    "SleepingStep",
    "Needs",
    "Reason",
    "RunAt",
    "RunBefore",
    "TaskFacts",
]
__all__ += ["load_facts"]

#: The bound of all counts of runs.
COUNTED = 10_000
#: The largest number of characters of a step's result that can be a moment.
MOMENT = 40
UNFINISHED = (RunStatus.RUNNING, RunStatus.QUEUED)


class Needs(enum.StrEnum):
    """The party that has to act before the task continues."""

    NOBODY = "nobody"  #: the host continues by itself
    CLIENT = "client"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class RowLink:
    """The row that a reason is about."""

    #: `app.model`, as in Django's permissions.
    model: str
    key: int


@dataclass(frozen=True, kw_only=True)
class Reason:
    """The reason why something does not continue, and what will happen next."""

    #: One word of a closed list: of `diagnosis.reasons.DiagnosisKind`, or `diagnosis.webhooks.KIND`.
    kind: str
    #: The explanation of the state.
    sentence: str
    #: The next thing that will happen.
    next: str
    #: The moment of that; None = unknown.
    at: datetime.datetime | None = None
    needs: Needs = Needs.NOBODY
    link: RowLink | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAt:
    """The run that the task waits for: the oldest one that has not ended."""

    key: int
    status: str
    queue: str
    quota_key: str
    round: int
    attempt: int
    #: Deaths that count against the run, and consecutive deaths beside other runs (`store/quarantine.py`).
    deaths: int = 0
    shared_deaths: int = 0
    worker: str
    due_at: datetime.datetime
    started_at: datetime.datetime | None
    lease_until: datetime.datetime | None
    ended_at: datetime.datetime | None
    #: The number of runs of the same task that wait for this one, up to COUNTED.
    behind: int = 0
    #: The key of the context whose runs wait for each other; None = they do not.
    ordered_in: int | None = None
    #: The step in which it was parked last, and the key of the task whose end wakes it.
    parked_in: str = ""
    awaits: int | None = None
    #: The key of the sum of a budget that has nothing left for it.
    waits_for_budget: int | None = None

    @property
    def is_parked(self) -> bool:
        """True if it has given its slot back until it is woken."""
        return self.status == RunStatus.QUEUED and self.round >= PARKED


@dataclass(frozen=True, kw_only=True, slots=True)
class SpentSum:
    """A sum of a budget that has nothing left: its key, the budget's name, and what was used of its limit."""

    key: int
    name: str
    amounts: str
    #: True if an operator is asked to allow more, and true if it resets at a time.
    asks: bool
    begins_anew: bool


@dataclass(frozen=True, slots=True)
class RunBefore:
    """The run of the same conversation that has to end first: its key, its task's id, and the number of such runs."""

    key: int
    task: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class SleepingStep:
    """A step that sleeps."""

    name: str
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A process that served a queue and no longer does."""

    name: str
    silence: datetime.timedelta
    #: True if the process is alive and only finishes its runs.
    draining: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePosition:
    """The place of a queued run; each count goes up to COUNTED."""

    #: The number of queued runs that start earlier, and of those among them with the same quota key.
    ahead: int = 0
    ahead_with_key: int = 0
    #: The numbers of active runs: in the processes that serve the queue, of this quota key, of this agent.
    running: int = 0
    running_with_key: int = 0
    running_of_agent: int = 0
    #: The number of live processes that serve this queue, of those that host the agent, and of their slots.
    processes: int = 0
    hosting: int = 0
    slots: int = 0
    #: The process that served the queue last; set only if no process serves it now.
    last: LostWorker | None = None
    #: The announced version of the agent that the queue belongs to; empty = the queue is not that of a version.
    version: str = ""
    #: The environment that announced this version; empty = the version was removed.
    environment: str = ""
    #: Tasks of this version "wait" or "fail" while it has no worker.
    when_version_is_gone: str = "wait"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFacts:
    """All facts about a task, by the database's clock."""

    now: datetime.datetime
    agent: str
    state: TaskState
    since: datetime.datetime
    #: The moment of the newest event; None = retention has removed it.
    spoke_at: datetime.datetime | None = None
    run: RunAt | None = None
    nap: SleepingStep | None = None
    #: The id of the task whose end wakes a parked run.
    awaited: str = ""
    #: The sum of a budget for which its parked run waits.
    spent: SpentSum | None = None
    line: QueuePosition | None = None
    before: RunBefore | None = None
    #: The operators' settings of its agent.
    switch: Switch = ON


def load_facts(task: int) -> TaskFacts | None:
    """Read the facts in a handful of queries, however long queues and logs are. None = there is no such task."""
    columns = ("agent", "state", "status_at", "last_event")
    row = Task.objects.filter(pk=task).values_list(*columns).first()
    if row is None:
        return None
    agent, state, since, last = row
    now = datetime.datetime.fromtimestamp(steps.clock(), datetime.UTC)
    run = _run(task, TaskState(state))
    is_queued = run is not None and run.status == RunStatus.QUEUED
    spoken = Event.objects.filter(task_id=task, number=last)
    return TaskFacts(
        now=now,
        agent=agent,
        state=TaskState(state),
        since=since,
        spoke_at=spoken.values_list("created_at", flat=True).first(),
        run=run,
        nap=_nap(task, run, now) if run and run.status == RunStatus.RUNNING else None,
        awaited=_find_awaited(run) if run and run.is_parked else "",
        spent=_find_spent(run) if run and run.is_parked else None,
        line=_read_position(agent, run, now) if run and is_queued else None,
        before=_find_before(run) if run and is_queued else None,
        switch=switches.of(agent),
    )


def _run(task: int, state: TaskState) -> RunAt | None:
    """Return the oldest unfinished run; for a cancelled task the run that was taken from its process."""
    rows = Run.objects.filter(task_id=task)
    if state is TaskState.CANCELED:
        rows = rows.filter(status=RunStatus.CANCELED).exclude(started_at=None).order_by("-pk")
        return _runs(rows[:1])
    if state in TERMINAL:
        return None
    return _runs(rows.filter(status__in=UNFINISHED).order_by("input_number", "pk")[: COUNTED + 1])


def _runs(rows: QuerySet[Run]) -> RunAt | None:
    columns = ("status", "queue", "quota_key", "round", "attempt", "worker")
    moments = ("due_at", "started_at", "lease_until", "ended_at")
    more = ("deaths", "shared_deaths", "ordered_in", "parked_in", "awaits", "waits_for_budget")
    found = list(rows.values("pk", *columns, *moments, *more))
    if not found:
        return None
    first = found[0]
    return RunAt(key=first.pop("pk"), behind=len(found) - 1, **first)


def _find_before(run: RunAt) -> RunBefore | None:
    if run.ordered_in is None:
        return None
    earlier = Run.objects.filter(
        ordered_in=run.ordered_in, pk__lt=run.key, status__in=UNFINISHED
    ).order_by("pk")
    first = earlier.values_list("pk", "task__public_id").first()
    return first and RunBefore(*first, _count(earlier))


def _find_awaited(run: RunAt) -> str:
    if run.awaits is None:
        return ""
    awaited = Task.objects.filter(pk=run.awaits).values_list("public_id", flat=True)
    return awaited.first() or ""


def _find_spent(run: RunAt) -> SpentSum | None:
    waits_for = run.waits_for_budget or 0
    use = BudgetUse.objects.filter(pk=waits_for).select_related("budget").first()
    if use is None:
        return None
    used, limit = use.used, use.budget.limit + use.allowed
    return SpentSum(
        key=use.pk,
        name=use.budget.name,
        amounts=f"{write_amount(used, use.budget)} of {write_amount(limit, use.budget)}",
        asks=use.asked_at is not None,
        begins_anew=use.budget.window != BudgetWindow.EVER,
    )


def _nap(task: int, run: RunAt, now: datetime.datetime) -> SleepingStep | None:
    """Return the last step of the turn if it is a sleep (`agents.waits.Sleep`) that has not ended."""
    turn = Run.objects.filter(pk=run.key).values("input_number")[:1]
    taken = Step.objects.filter(task_id=task, input_number=turn).order_by("-created_at")
    last = taken.values_list("name", Left("result", MOMENT + 1)).first()
    until = None if last is None else _moment(last[1])
    return SleepingStep(last[0], until) if last and until and until > now else None


def _moment(result: str) -> datetime.datetime | None:
    """Return the moment in a step's result, as `Sleep` stores it: seconds since the epoch."""
    if len(result) > MOMENT:
        return None
    seconds = json.loads(result)
    if not isinstance(seconds, float):
        return None
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _read_position(agent: str, run: RunAt, now: datetime.datetime) -> QueuePosition:
    queued = Run.objects.filter(status=RunStatus.QUEUED, queue=run.queue, round__lte=run.round)
    earlier = queued.filter(Q(round__lt=run.round) | Q(pk__lt=run.key))
    underway = Run.objects.filter(status=RunStatus.RUNNING)
    leased = underway.filter(lease_until__gt=now)
    serving = _read_workers(run.queue, leased)
    slug, _, version = run.queue.rpartition("@")
    announced = AgentVersion.objects.filter(slug=slug, version=version)
    known = known_versions.find(slug, version)
    return QueuePosition(
        ahead=_count(earlier),
        ahead_with_key=_count(earlier.filter(quota_key=run.quota_key)),
        running=_count(leased.filter(worker__in=serving.names)),
        running_with_key=_count(leased.filter(quota_key=run.quota_key)),
        running_of_agent=_count(underway.filter(task__agent=agent)),
        processes=len(serving.names),
        hosting=serving.count_hosting(agent),
        slots=serving.slots(),
        last=serving.last,
        version=version if agent == slug else "",
        environment=announced.values_list("environment", flat=True).first() or "",
        when_version_is_gone=known.agent.when_version_is_gone if known else "wait",
    )


@dataclass(frozen=True, slots=True)
class _QueueWorkers:
    """The processes that serve a queue: those that are registered, and those that only hold leases of its runs."""

    taking: list[Worker]
    silent: set[str]
    last: LostWorker | None

    @property
    def names(self) -> set[str]:
        return {worker.name for worker in self.taking} | self.silent

    def count_hosting(self, agent: str) -> int:
        return len(self.silent) + sum(agent in worker.agents for worker in self.taking)

    def slots(self) -> int:
        return len(self.silent) * int(conf.RUN_SLOTS) + sum(worker.slots for worker in self.taking)


def _read_workers(queue: str, leased: QuerySet[Run]) -> _QueueWorkers:
    """Find the processes: by heartbeat, or by leases if they send none (A2A_PRESENCE_SECONDS is 0)."""
    seen = workers.list_seen()
    taking = [one.worker for one in seen if one.takes(queue)]
    holders = set(leased.filter(queue=queue).values_list("worker", flat=True).distinct())
    silent = holders - {one.worker.name for one in seen}
    took = [one for one in seen if queue in one.worker.queues and one.worker not in taking]
    last = min(took, key=lambda one: one.silence, default=None)
    gone = LostWorker(last.worker.name, last.silence, last.alive) if last else None
    return _QueueWorkers(taking, silent, None if taking or silent else gone)


def _count(rows: QuerySet[Run]) -> int:
    return rows.values("pk")[:COUNTED].count()
