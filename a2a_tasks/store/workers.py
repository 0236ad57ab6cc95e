"""The presence of this host's processes: each of them reports regularly. All times are the database's.

Leases, not these rows, decide which process holds a run. The rows are for operators, and for one decision: a claiming
process fails a run whose agent it does not have only if no process with this agent was seen for a while
(`backend/sql/claim_runs.sql`).
"""

from __future__ import annotations

import dataclasses
import datetime
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from django.db.models import QuerySet
from django.db.models.functions import Now

from a2a_tasks.conf import conf
from a2a_tasks.models import LONG_COLUMNS, Run, RunStatus, Worker, WorkerKind

__all__ = [
    "KEPT",
    "KEPT_IN_VAIN",
    "LISTED",
    "absence",
    "MISSED",
    "Beat",
    "WorkerStatus",
    "WorkerKind",
    "alive",
    "beat",
    "forget_old",
    "list_runs",
    "list_hosted",
    "leave",
    "list_awaited_queues",
    "list_living",
    "list_seen",
    "look_at",
    "count_serving",
    "without_long_columns",
]

#: Number of missed reports after which a process counts as dead.
MISSED = 3
#: Time for which the row of a dead process is kept, for operators.
KEPT = datetime.timedelta(days=1)
#: Time for which a row is kept that tells operators nothing: its process has left, or another one has begun in its place.
KEPT_IN_VAIN = datetime.timedelta(hours=1)
#: Most processes in a list. A process that crashes at its start leaves a row each time.
LISTED = 1000
#: Maximum lengths of a process's name and version in its row.
MAX_NAME_LENGTH, MAX_VERSION_LENGTH = 128, 64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """One report of a process about itself."""

    name: str
    kind: WorkerKind
    host: str
    pid: int
    #: The time of its start, by its own clock.
    started_at: datetime.datetime
    version: str = ""
    queues: Sequence[str] = ()
    #: The agents: their slugs, with the versions on their cards.
    agents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    slots: int = 0
    running: int = 0
    draining: bool = False


def beat(report: Beat) -> None:
    """Store a report with the database's time: one row for each process, one statement."""
    values = {name: getattr(report, name) for name in Beat.__slots__}
    values |= {
        "name": report.name[:MAX_NAME_LENGTH],
        "host": report.host[:MAX_NAME_LENGTH],
        "version": report.version[:MAX_VERSION_LENGTH],
        "queues": list(report.queues),
        "agents": dict(report.agents),
        "seen_at": Now(),
        "left_at": None,
    }
    row = Worker(**values)
    changed = [name for name in values if name != "name"]
    Worker.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["name"], update_fields=changed
    )


def leave(name: str) -> None:
    """Record that the process ends in an orderly way. In a deploy, its successor may start a moment later."""
    Worker.objects.filter(name=name[:MAX_NAME_LENGTH]).update(seen_at=Now(), left_at=Now())


def forget_old(max_count: int = LISTED) -> int:
    """Delete the rows of processes that are gone, of the oldest `max_count`; return their number.

    A row goes after `KEPT`, or after `KEPT_IN_VAIN` if its process has left or is replaced; never within `absence`.
    """
    oldest = Worker.objects.defer("agents", "host", "version").order_by("seen_at")
    rows = _see(oldest, max_count)
    replaced = _find_replaced(one for one in rows if one.worker.left_at is None)
    gone = [one.worker.pk for one in rows if one.silence > _find_limit(one.worker, replaced)]
    return Worker.objects.filter(pk__in=gone, seen_at__lt=Now() - KEPT_IN_VAIN).delete()[0]


def _find_limit(row: Worker, replaced: Collection[int]) -> datetime.timedelta:
    in_vain = row.left_at is not None or row.pk in replaced
    return max(KEPT_IN_VAIN if in_vain else KEPT, absence())


def patience() -> datetime.timedelta:
    """Return the time without a report for which a process counts as alive."""
    return datetime.timedelta(seconds=MISSED * float(conf.PRESENCE_SECONDS))


def absence() -> datetime.timedelta:
    """Return the time without a report from a process with an agent after which no process counts as having it."""
    return max(datetime.timedelta(seconds=float(conf.ORPHAN_SECONDS)), patience())


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The row of a process, and the time since its last report."""

    worker: Worker
    silence: datetime.timedelta
    #: True if a process of its kind and queues has started since its last report.
    replaced: bool = False

    @property
    def alive(self) -> bool:
        """True if it has missed fewer than `MISSED` reports."""
        return self.silence < patience()

    @property
    def state(self) -> str:
        """ "alive", "draining", "dead", or "replaced": dead, and another has begun in its place."""
        if not self.alive:
            return "replaced" if self.replaced else "dead"
        return "draining" if self.worker.draining else "alive"

    def takes(self, queue: str) -> bool:
        """Return whether it takes runs from this queue and does not drain."""
        return self.alive and queue in self.worker.queues and not self.worker.draining


def list_seen() -> list[WorkerStatus]:
    """Return the processes that have not left, by name, including dead ones: the `LISTED` that were seen last."""
    seen = sorted(_see(_present().order_by("-seen_at"), LISTED), key=lambda one: one.worker.name)
    replaced = _find_replaced(seen)
    return [dataclasses.replace(one, replaced=one.worker.pk in replaced) for one in seen]


def look_at(row: Worker) -> WorkerStatus:
    """Return one process with the time since its last report; a row that was deleted meanwhile counts as long dead."""
    listed = (one for one in list_seen() if one.worker.pk == row.pk)
    found = next(listed, None) or next(iter(_see(Worker.objects.filter(pk=row.pk))), None)
    return found or WorkerStatus(row, KEPT)


def _present() -> QuerySet[Worker]:
    return Worker.objects.filter(left_at=None)


def _see(rows: QuerySet[Worker], max_count: int | None = None) -> list[WorkerStatus]:
    """Return the first of these rows, each with the time since its last report."""
    return [
        WorkerStatus(row, row.now - row.seen_at) for row in rows.annotate(now=Now())[:max_count]
    ]


def _find_replaced(processes: Iterable[WorkerStatus]) -> set[int]:
    """Return the keys of the dead processes in whose place another one of their kind and queues has begun.

    Each process replaces at most one: of those that were dead when it began, the one with the oldest last report.
    """
    teams = defaultdict[tuple[str, ...], list[WorkerStatus]](list)
    for one in processes:
        teams[one.worker.kind, *one.worker.queues].append(one)
    return {key for team in teams.values() for key in _pair(team)}


def _pair(team: Sequence[WorkerStatus]) -> Iterator[int]:
    silent = sorted((one for one in team if not one.alive), key=lambda one: one.worker.seen_at)
    dead = deque(one.worker for one in silent)
    for begun in sorted(one.worker.started_at for one in team):
        if dead and dead[0].seen_at <= begun:
            yield dead.popleft().pk


def list_living() -> list[WorkerStatus]:
    """Return the living processes, by name. Those that died cost nothing, however many they are."""
    return _see(_present().filter(seen_at__gt=Now() - patience()).order_by("name"))


def alive(queue: str | None = None) -> list[Worker]:
    """Return the living processes, by name; with a queue, those that take from it and do not drain."""
    return [one.worker for one in list_living() if queue is None or one.takes(queue)]


def count_serving(named: Iterable[str], processes: Sequence[WorkerStatus]) -> dict[str, int]:
    """Count the processes that take from each queue: the named queues, and all queues in which runs wait.

    The result is empty if processes do not report their presence.
    """
    if not float(conf.PRESENCE_SECONDS):
        return {}
    queues = sorted({*named, *list_awaited_queues()})
    return {queue: sum(one.takes(queue) for one in processes) for queue in queues}


def list_awaited_queues() -> Iterator[str]:
    """Yield the queues in which runs wait, one step along the index each."""
    queues = Run.objects.filter(status=RunStatus.QUEUED).order_by("queue").values_list("queue")
    found = queues.first()
    while found:
        yield found[0]
        found = queues.filter(queue__gt=found[0]).first()


def list_hosted(within: datetime.timedelta) -> dict[str, set[str]]:
    """Return for each queue the agents of all processes that take from it and were seen within this time."""
    found = defaultdict[str, set[str]](set)
    for worker in Worker.objects.filter(seen_at__gt=Now() - within):
        for queue in worker.queues:
            found[queue] |= worker.agents.keys()
    return found


def list_runs(worker: str) -> QuerySet[Run]:
    """Return the runs that a process holds, oldest first, with their tasks and without their long columns."""
    runs = Run.objects.filter(status=RunStatus.RUNNING, worker=worker[:MAX_NAME_LENGTH])
    return without_long_columns(runs).order_by("pk")


def without_long_columns(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Return the runs with their tasks, and without long columns and credentials of both."""
    unread = ("error", "request", "token", *(f"task__{name}" for name in LONG_COLUMNS))
    return runs.select_related("task").defer(*unread)
