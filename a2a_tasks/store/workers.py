"""The processes of this host: each says again and again that it is there. All time is the database's.

Whose a run is, its lease decides. What is told here is for operators, and for one decision: a run whose agent a claiming
process has not is failed only if no process that has the agent was seen for a while (`backend.postgres.CLAIM`).
"""

from __future__ import annotations

import dataclasses
import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from django.db.models import QuerySet
from django.db.models.functions import Now

from a2a_tasks.conf import conf
from a2a_tasks.models import Run, RunStatus, Worker, WorkerKind

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
]

#: So many beats missed, and a process counts as dead.
MISSED = 3
#: For how long the row of a dead one is kept, for whoever asks what became of it.
KEPT = datetime.timedelta(days=1)
#: Longest name of a process, and of its version, that its row holds.
MAX_NAME_LENGTH, MAX_VERSION_LENGTH = 128, 64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """The state of a process, as it reports it."""

    name: str
    kind: WorkerKind
    host: str
    pid: int
    #: When it began, by its own clock.
    started_at: datetime.datetime
    version: str = ""
    queues: Sequence[str] = ()
    #: Slug to the version on the card.
    agents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    slots: int = 0
    running: int = 0
    draining: bool = False


def beat(report: Beat) -> None:
    """Write it down, by the database's clock: one row a process, one statement."""
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
    """Note that the process ends in good order. Its successor, in a deploy, may take a moment."""
    Worker.objects.filter(name=name[:MAX_NAME_LENGTH]).update(seen_at=Now(), left_at=Now())


def forget_old() -> int:
    """Take away the rows of processes that have been gone for `KEPT`; returns how many."""
    return Worker.objects.filter(seen_at__lt=Now() - KEPT).delete()[0]


def patience() -> datetime.timedelta:
    """For how long a process may say nothing and count as alive."""
    return datetime.timedelta(seconds=MISSED * float(conf.PRESENCE_SECONDS))


def absence() -> datetime.timedelta:
    """Return for how long no process with an agent must have been seen for the host to say that there is none."""
    return max(datetime.timedelta(seconds=float(conf.ORPHAN_SECONDS)), patience())


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A process that is remembered, and for how long it has said nothing."""

    worker: Worker
    silence: datetime.timedelta
    #: Has a process of its kind, for the same queues, begun since its last sign of life?
    replaced: bool = False

    @property
    def alive(self) -> bool:
        """Has it missed fewer than `MISSED` beats?"""
        return self.silence < patience()

    def takes(self, queue: str) -> bool:
        """Does it take runs from this queue, and go on doing so?"""
        return self.alive and queue in self.worker.queues and not self.worker.draining


def list_seen() -> list[Seen]:
    """All processes that have not left, by name, the dead ones with them.

    Each process replaces one dead process at most: the one of its kind and queues that fell silent first.
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
    """The processes that are alive, by name; of a queue, those that take from it, and go on doing so."""
    return [one.worker for one in list_seen() if (one.alive if queue is None else one.takes(queue))]


def count_serving(named: Iterable[str], processes: Sequence[Seen]) -> dict[str, int]:
    """Count the processes that take from each queue: from these, and from all in which runs wait.

    Returns nothing if processes do not report their presence.
    """
    if not float(conf.PRESENCE_SECONDS):
        return {}
    awaited = Run.objects.filter(status=RunStatus.QUEUED).order_by().values_list("queue")
    queues = {*named, *(queue for (queue,) in awaited.distinct())}
    return {queue: sum(one.takes(queue) for one in processes) for queue in sorted(queues)}


def list_hosted(within: datetime.timedelta) -> dict[str, set[str]]:
    """Return by queue the agents of all processes that take from it and were seen within that time."""
    found = defaultdict[str, set[str]](set)
    for worker in Worker.objects.filter(seen_at__gt=Now() - within):
        for queue in worker.queues:
            found[queue] |= worker.agents.keys()
    return found


def list_runs(worker: str) -> QuerySet[Run]:
    """The runs that a process holds by their leases, the oldest first, with their tasks and without what is long."""
    held = Run.objects.filter(status=RunStatus.RUNNING, worker=worker[:MAX_NAME_LENGTH])
    unread = ("status_message", "metadata", "memory", "run_token")
    return (
        held.select_related("task")
        .defer("error", "request", "token", *(f"task__{name}" for name in unread))
        .order_by("pk")
    )
