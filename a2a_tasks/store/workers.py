"""The processes of this host: each says again and again that it is there. All time is the database's.

Whose a run is, its lease decides. What is told here is for operators, and for one decision: a run whose agent a claiming
process has not is failed only if no process that has the agent was seen for a while (`runs.CLAIM`).
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
    "MISSED",
    "Beat",
    "Seen",
    "WorkerKind",
    "alive",
    "beat",
    "forget_old",
    "holding",
    "hosted",
    "leave",
    "seen",
    "serving",
]

#: So many beats missed, and a process counts as dead.
MISSED = 3
#: For how long the row of a dead one is kept, for whoever asks what became of it.
KEPT = datetime.timedelta(days=1)
#: Longest name of a process, and of its version, that its row holds.
LONGEST_NAME, LONGEST_VERSION = 128, 64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """What a process says of itself."""

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


def beat(said: Beat) -> None:
    """Write it down, by the database's clock: one row a process, one statement."""
    values = {name: getattr(said, name) for name in Beat.__slots__}
    values |= {
        "name": said.name[:LONGEST_NAME],
        "host": said.host[:LONGEST_NAME],
        "version": said.version[:LONGEST_VERSION],
        "queues": list(said.queues),
        "agents": dict(said.agents),
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
    Worker.objects.filter(name=name[:LONGEST_NAME]).update(seen_at=Now(), left_at=Now())


def forget_old() -> int:
    """Take away the rows of processes that have been gone for `KEPT`; returns how many."""
    return Worker.objects.filter(seen_at__lt=Now() - KEPT).delete()[0]


def patience() -> datetime.timedelta:
    """For how long a process may say nothing and count as alive."""
    return datetime.timedelta(seconds=MISSED * float(conf.PRESENCE_SECONDS))


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


def seen() -> list[Seen]:
    """All processes that have not left, by name, the dead ones with them.

    Each process replaces one dead process at most: the one of its kind and queues that fell silent first.
    """
    rows = list(Worker.objects.filter(left_at=None).annotate(now=Now()).order_by("name"))
    silent = sorted((row for row in rows if row.now - row.seen_at >= patience()), key=_seen_at)
    replaced = set()
    for fresh in sorted(rows, key=lambda row: row.started_at):
        for dead in silent:
            alike = (dead.kind, dead.queues) == (fresh.kind, fresh.queues)
            if alike and dead.seen_at <= fresh.started_at and dead.pk not in replaced:
                replaced.add(dead.pk)
                break
    return [Seen(row, row.now - row.seen_at, row.pk in replaced) for row in rows]


def _seen_at(row: Worker) -> datetime.datetime:
    return row.seen_at


def alive(queue: str | None = None) -> list[Worker]:
    """The processes that are alive, by name; of a queue, those that take from it, and go on doing so."""
    return [one.worker for one in seen() if (one.alive if queue is None else one.takes(queue))]


def serving(named: Iterable[str], told: Sequence[Seen]) -> dict[str, int]:
    """How many of the processes take from each queue: from these, and from all in which runs wait.

    Nothing if processes do not say that they are there.
    """
    if not float(conf.PRESENCE_SECONDS):
        return {}
    awaited = Run.objects.filter(status=RunStatus.QUEUED).order_by().values_list("queue")
    queues = {*named, *(queue for (queue,) in awaited.distinct())}
    return {queue: sum(one.takes(queue) for one in told) for queue in sorted(queues)}


def hosted(seconds: float) -> dict[str, set[str]]:
    """By queue: the agents of all processes that took from it and were seen in the last so many seconds."""
    since = Now() - datetime.timedelta(seconds=seconds)
    found = defaultdict[str, set[str]](set)
    for worker in Worker.objects.filter(seen_at__gt=since):
        for queue in worker.queues:
            found[queue] |= worker.agents.keys()
    return found


def holding(worker: str) -> QuerySet[Run]:
    """The runs that a process holds by their leases, the oldest first, with their tasks and without what is long."""
    held = Run.objects.filter(status=RunStatus.RUNNING, worker=worker[:LONGEST_NAME])
    unread = ("status_message", "metadata", "memory", "run_token")
    return (
        held.select_related("task")
        .defer("error", "request", "token", *(f"task__{name}" for name in unread))
        .order_by("pk")
    )
