"""The presence of this host's processes: each of them reports regularly. All times are the database's.

Leases, not these rows, decide which process holds a run. The rows are for operators, and for one decision: a claiming
process fails a run whose agent it does not have only if no process with this agent was seen for a while
(`backend.postgres.CLAIM`).
"""

from __future__ import annotations

import dataclasses
import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db.models import QuerySet
from django.db.models.functions import Now

from a2a_tasks.conf import conf
from a2a_tasks.models import LONG_COLUMNS, Run, RunStatus, Worker, WorkerKind

__all__ = [
    "KEPT",
    "absence",
    "MISSED",
    "Beat",
    "Seen",
    "WorkerKind",
    "alive",
    "beat",
    "forget_old",
    "list_runs",
    "list_hosted",
    "leave",
    "list_seen",
    "count_serving",
    "without_long_columns",
]

#: Number of missed reports after which a process counts as dead.
MISSED = 3
#: Time for which the row of a dead process is kept, for operators.
KEPT = datetime.timedelta(days=1)
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


def forget_old() -> int:
    """Delete the rows of processes that have been gone for `KEPT`; return their number."""
    return Worker.objects.filter(seen_at__lt=Now() - KEPT).delete()[0]


def patience() -> datetime.timedelta:
    """Return the time without a report for which a process counts as alive."""
    return datetime.timedelta(seconds=MISSED * float(conf.PRESENCE_SECONDS))


def absence() -> datetime.timedelta:
    """Return the time without a report from a process with an agent after which no process counts as having it."""
    return max(datetime.timedelta(seconds=float(conf.ORPHAN_SECONDS)), patience())


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """The row of a process, and the time since its last report."""

    worker: Worker
    silence: datetime.timedelta
    #: True if a process of its kind and queues has started since its last report.
    replaced: bool = False

    @property
    def alive(self) -> bool:
        """True if it has missed fewer than `MISSED` reports."""
        return self.silence < patience()

    def takes(self, queue: str) -> bool:
        """Return whether it takes runs from this queue and does not drain."""
        return self.alive and queue in self.worker.queues and not self.worker.draining


def list_seen() -> list[Seen]:
    """Return all processes that have not left, by name, including dead ones.

    Each process replaces at most one dead process: of those of its kind and queues, the one with the oldest last report.
    """
    rows = list(Worker.objects.filter(left_at=None).annotate(now=Now()).order_by("name"))
    dead_rows = (row for row in rows if row.now - row.seen_at >= patience())
    silent = sorted(dead_rows, key=lambda row: row.seen_at)
    replaced = set()
    for fresh in sorted(rows, key=lambda row: row.started_at):
        for dead in silent:
            alike = (dead.kind, dead.queues) == (fresh.kind, fresh.queues)
            if alike and dead.seen_at <= fresh.started_at and dead.pk not in replaced:
                replaced.add(dead.pk)
                break
    return [Seen(row, row.now - row.seen_at, row.pk in replaced) for row in rows]


def alive(queue: str | None = None) -> list[Worker]:
    """Return the living processes, by name; with a queue, those that take from it and do not drain."""
    return [one.worker for one in list_seen() if (one.alive if queue is None else one.takes(queue))]


def count_serving(named: Iterable[str], processes: Sequence[Seen]) -> dict[str, int]:
    """Count the processes that take from each queue: the named queues, and all queues in which runs wait.

    The result is empty if processes do not report their presence.
    """
    if not float(conf.PRESENCE_SECONDS):
        return {}
    awaited = Run.objects.filter(status=RunStatus.QUEUED).order_by().values_list("queue")
    queues = {*named, *(queue for (queue,) in awaited.distinct())}
    return {queue: sum(one.takes(queue) for one in processes) for queue in sorted(queues)}


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
