"""The tasks that do not go on by themselves, or only after a loss. Only unfinished runs are read, along their indexes.

The kinds are those of the diagnosis (`diagnosis/reasons.py`) under which a task may be stuck, and `silent`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from a2a_tasks.conf import conf
from a2a_tasks.models import WAITS_FOR_SLOT, Event, Run, RunStatus
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.store import workers
from a2a_tasks.store.backend.fair_queue import list_waiting_agents
from a2a_tasks.store.quarantine import Quarantine

__all__ = ["KINDS", "MAX_COUNT", "StuckTask", "find_stuck"]

#: Kinds of stuck tasks, and how many of them are found at most.
KINDS = ("no-worker", "no-agent", "lost", "silent", "quarantine")
MAX_COUNT = 5_000
#: The number of poll intervals after which a due run that no process takes counts as stuck, as in the diagnosis.
LOOKS = 10


class StuckTask(NamedTuple):
    """A task by its key, the kind of its reason, and the reason in words."""

    task: int
    kind: str
    words: str


def find_stuck(kind: str = "any") -> dict[int, StuckTask]:
    """Return the stuck tasks of a kind, or of any, by their keys. The first kind that holds counts."""
    found: dict[int, StuckTask] = {}
    for one in _find():
        found.setdefault(one.task, one)
    wanted = (one for one in found.values() if kind in {"any", one.kind})
    return {one.task: one for one in islice(wanted, MAX_COUNT)}


def _find() -> Iterator[StuckTask]:
    running = Run.objects.filter(status=RunStatus.RUNNING)
    lost = running.filter(lease_until__lte=Now()).order_by("lease_until")
    for task, worker in _read(lost, "worker"):
        yield StuckTask(task, "lost", f"no heartbeat from {worker}")
    spoke = Event.objects.filter(task=OuterRef("task"), number=OuterRef("task__last_event"))
    since = Now() - timedelta(minutes=float(conf.SILENT_MINUTES))
    silent = running.filter(started_at__lt=since).exclude(task__state__in=INTERRUPTED)
    silent = silent.exclude(Exists(spoke.filter(created_at__gte=since)))
    for task, worker in _read(silent.order_by("lease_until"), "worker"):
        yield StuckTask(task, "silent", f"no output for {conf.SILENT_MINUTES:g} min from {worker}")
    yield from _find_unserved()
    suspect = Run.objects.filter(WAITS_FOR_SLOT, shared_deaths__gte=Quarantine.GROUP)
    for task, deaths in _read(suspect.filter(due_at__lte=Now()), "shared_deaths"):
        yield StuckTask(task, "quarantine", f"its workers died {deaths} times in a row")


def _find_unserved() -> Iterator[StuckTask]:
    """Yield tasks whose queue no process takes from, or whose agent none of its processes has."""
    hosted = _list_hosted()
    patience = timedelta(seconds=LOOKS * float(conf.POLL_SECONDS))
    due = Run.objects.filter(WAITS_FOR_SLOT, due_at__lte=Now() - patience)
    left = dict.fromkeys(("no-agent", "no-worker"), MAX_COUNT)
    for queue in workers.list_awaited_queues():
        for agent in list_waiting_agents(queue):
            if queue in hosted and hosted[queue] & {agent, ""}:
                continue
            kind = "no-agent" if queue in hosted else "no-worker"
            words = (
                f"worker for the queue {queue}" if kind == "no-worker" else f"worker has {agent}"
            )
            # The newest, as in lists: a bulk job goes down from them, and finds the next ones when they are done.
            rows = due.filter(queue=queue, agent=agent).order_by("-round", "-pk")
            found = list(_read(rows[: left[kind]]))
            left[kind] -= len(found)
            for (task,) in found:
                yield StuckTask(task, kind, f"no {words}")


def _list_hosted() -> dict[str, set[str]]:
    """Return the agents of the processes that take from each queue; "" for processes that only hold leases."""
    hosted = defaultdict[str, set[str]](set)
    seen = workers.list_seen()
    for one in seen:
        for queue in filter(one.takes, one.worker.queues):
            hosted[queue] |= one.worker.agents.keys()
    names = [one.worker.name for one in seen]
    leased = Run.objects.filter(status=RunStatus.RUNNING, lease_until__gt=Now())
    others = leased.exclude(worker__in=names).values_list("queue", flat=True)
    for queue in set(others[:MAX_COUNT]):
        hosted[queue].add("")
    return dict(hosted)


def _read(rows: QuerySet[Run], *columns: str) -> Iterator[tuple[Any, ...]]:
    yield from rows.values_list("task_id", *columns)[:MAX_COUNT]
