"""What is known of a task that somebody finds stuck: its newest status, its run, the line before it. Read, never judged.

Other apps know reasons of their own, of what is kept beside a task; each registers itself when it is loaded.
"""

from __future__ import annotations

import datetime
import enum
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from a2a_tasks.agents.switches import ON, Switch
from a2a_tasks.conf import conf
from a2a_tasks.models import Event, Run, RunStatus, Step, Task, Worker
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import steps, switches, workers

__all__ = ["COUNTED", "Ask", "Gone", "Line", "Link", "Nap", "Needs", "Reason", "RunAt", "Situation"]
__all__ += ["also", "others", "situation"]

#: Runs before another one are counted so far and no further.
COUNTED = 10_000
#: Characters of a step's result that can be a moment.
MOMENT = 40
UNFINISHED = (RunStatus.RUNNING, RunStatus.QUEUED)


class Needs(enum.StrEnum):
    """Who has to do something, that it goes on."""

    NOBODY = "nobody"  #: the host does it by itself
    CLIENT = "client"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Link:
    """The row that a reason is about."""

    #: `app.model`, as Django's permissions name it.
    model: str
    key: int


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why something does not go on, and what will happen next."""

    #: One word of a closed list: of `operations.standing.Kind`, or of whoever registered.
    kind: str
    #: Why it stands as it does.
    sentence: str
    #: The next thing that will happen to it.
    next: str
    #: When that will be; None = nobody knows.
    at: datetime.datetime | None = None
    needs: Needs = Needs.NOBODY
    link: Link | None = None


#: From the primary key of a task: the reasons why what is kept beside it waits.
Ask = Callable[[int], Iterable[Reason]]
_asks: list[Ask] = []


def also(ask: Ask) -> None:
    """Have `ask` asked for each task that somebody asks about."""
    if ask not in _asks:
        _asks.append(ask)


def others(task: int) -> tuple[Reason, ...]:
    """What others know of this task."""
    return tuple(reason for ask in _asks for reason in ask(task))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAt:
    """The run that the task waits for: the oldest that has not ended."""

    key: int
    status: str
    queue: str
    share: str
    round: int
    attempt: int
    #: Deaths that count against it, and deaths beside others in a row (`store/quarantine.py`).
    deaths: int = 0
    shared_deaths: int = 0
    worker: str
    due_at: datetime.datetime
    started_at: datetime.datetime | None
    lease_until: datetime.datetime | None
    ended_at: datetime.datetime | None
    #: Runs of the same task that wait for this one, up to COUNTED.
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Nap:
    """A step that only waits."""

    name: str
    until: datetime.datetime


@dataclass(frozen=True, slots=True)
class Gone:
    """A process that took from a queue, and takes no more."""

    name: str
    silence: datetime.timedelta
    #: It is alive, and ends what it holds.
    draining: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """What is before a queued run, each up to COUNTED."""

    #: Queued runs that start earlier, and how many of them are of the same share.
    ahead: int = 0
    ahead_of_share: int = 0
    #: Runs under way: in these processes, of this share, of this agent.
    running: int = 0
    running_of_share: int = 0
    running_of_agent: int = 0
    #: Living processes that take from this queue, how many of them have the agent, and what they carry together.
    processes: int = 0
    hosting: int = 0
    slots: int = 0
    #: Of those that took from it, the one that was heard of last. Told if there is none that does.
    last: Gone | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """All of it, by the database's clock."""

    now: datetime.datetime
    agent: str
    state: TaskState
    since: datetime.datetime
    #: When the newest event was written; None = retention has removed it.
    spoke_at: datetime.datetime | None = None
    run: RunAt | None = None
    nap: Nap | None = None
    line: Line | None = None
    #: What operators have set of its agent.
    switch: Switch = ON


def situation(task: int) -> Situation | None:
    """Read it, in a handful of queries however long lines and logs are. None = there is no such task."""
    columns = ("agent", "state", "status_at", "last_event")
    row = Task.objects.filter(pk=task).values_list(*columns).first()
    if row is None:
        return None
    agent, state, since, last = row
    now = datetime.datetime.fromtimestamp(steps.clock(), datetime.UTC)
    run = _run(task, TaskState(state))
    spoken = Event.objects.filter(task_id=task, number=last)
    return Situation(
        now=now,
        agent=agent,
        state=TaskState(state),
        since=since,
        spoke_at=spoken.values_list("created_at", flat=True).first(),
        run=run,
        nap=_nap(task, run, now) if run and run.status == RunStatus.RUNNING else None,
        line=_line(agent, run, now) if run and run.status == RunStatus.QUEUED else None,
        switch=switches.of(agent),
    )


def _run(task: int, state: TaskState) -> RunAt | None:
    """The oldest unfinished run; of a cancelled task the one that was taken from its process."""
    rows = Run.objects.filter(task_id=task)
    if state is TaskState.CANCELED:
        rows = rows.filter(status=RunStatus.CANCELED).exclude(started_at=None).order_by("-pk")
        return _runs(rows[:1])
    if state in TERMINAL:
        return None
    return _runs(rows.filter(status__in=UNFINISHED).order_by("pk")[: COUNTED + 1])


def _runs(rows: QuerySet[Run]) -> RunAt | None:
    columns = ("status", "queue", "share", "round", "attempt", "deaths", "shared_deaths", "worker")
    moments = ("due_at", "started_at", "lease_until", "ended_at")
    found = list(rows.values("pk", *columns, *moments))
    if not found:
        return None
    first = found[0]
    return RunAt(key=first.pop("pk"), behind=len(found) - 1, **first)


def _nap(task: int, run: RunAt, now: datetime.datetime) -> Nap | None:
    """The last step of the turn, if it is one that waits (`agents.steps.Sleep`) and has not woken."""
    turn = Run.objects.filter(pk=run.key).values("input_number")[:1]
    taken = Step.objects.filter(task_id=task, input_number=turn).order_by("-created_at")
    last = taken.values_list("name", Left("result", MOMENT + 1)).first()
    until = None if last is None else _moment(last[1])
    return Nap(last[0], until) if last and until and until > now else None


def _moment(result: str) -> datetime.datetime | None:
    """The moment a step's result is, as `Sleep` keeps it: seconds since the epoch."""
    if len(result) > MOMENT:
        return None
    seconds = json.loads(result)
    if not isinstance(seconds, float):
        return None
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _line(agent: str, run: RunAt, now: datetime.datetime) -> Line:
    queued = Run.objects.filter(status=RunStatus.QUEUED, queue=run.queue, round__lte=run.round)
    earlier = queued.filter(Q(round__lt=run.round) | Q(pk__lt=run.key))
    underway = Run.objects.filter(status=RunStatus.RUNNING)
    held = underway.filter(lease_until__gt=now)
    there = _there(run.queue, held)
    return Line(
        ahead=_counted(earlier),
        ahead_of_share=_counted(earlier.filter(share=run.share)),
        running=_counted(held.filter(worker__in=there.names)),
        running_of_share=_counted(held.filter(share=run.share)),
        running_of_agent=_counted(underway.filter(task__agent=agent)),
        processes=len(there.names),
        hosting=there.hosting(agent),
        slots=there.slots(),
        last=there.last,
    )


@dataclass(frozen=True, slots=True)
class _There:
    """The processes that take from a queue: those that say so, and those that only hold runs of it."""

    told: list[Worker]
    silent: set[str]
    last: Gone | None

    @property
    def names(self) -> set[str]:
        return {worker.name for worker in self.told} | self.silent

    def hosting(self, agent: str) -> int:
        return len(self.silent) + sum(agent in worker.agents for worker in self.told)

    def slots(self) -> int:
        return len(self.silent) * int(conf.RUN_SLOTS) + sum(worker.slots for worker in self.told)


def _there(queue: str, held: QuerySet[Run]) -> _There:
    """Who says that it is there is believed; who says nothing (A2A_PRESENCE_SECONDS is 0) is known by its leases."""
    seen = workers.seen()
    told = [one.worker for one in seen if one.takes(queue)]
    holders = set(held.filter(queue=queue).values_list("worker", flat=True).distinct())
    silent = holders - {one.worker.name for one in seen}
    took = [one for one in seen if queue in one.worker.queues and one.worker not in told]
    last = min(took, key=lambda one: one.silence, default=None)
    gone = Gone(last.worker.name, last.silence, last.alive) if last else None
    return _There(told, silent, None if told or silent else gone)


def _counted(rows: QuerySet[Run]) -> int:
    return rows.values("pk")[:COUNTED].count()
