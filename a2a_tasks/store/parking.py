"""Parked runs: rows that hold no slot until their time has come, or until the task that they await has ended.

A parked run is a queued one, so that runs behind it still wait, and a cancel ends it at once. Its round is PARKED,
which lies behind those that claims read. `wake` gives it a round as if it were new.
"""

from __future__ import annotations

import datetime
from collections import Counter
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import IS_PARKED, PARKED, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.store import budgets
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from a2a_tasks.telemetry.trace_context import AttemptBefore, note_attempt

__all__ = ["LAST_SECOND", "Parking", "park", "wake"]

#: Maximum number of runs woken in one transaction.
BATCH = 1000
#: The last second that a datetime can express.
LAST_SECOND = datetime.datetime.max.replace(tzinfo=datetime.UTC, microsecond=0).timestamp()


class Parking(NamedTuple):
    """A run to park: the step in which it waits, and until when, in seconds since the epoch by the database's clock."""

    run: ClaimedRun
    step: str
    until: float
    #: Number of values that its agent has yielded.
    said: int = 0
    #: The key of the task whose end wakes it before.
    awaits: int | None = None
    #: The key of the sum of a budget that has nothing left for it.
    budget: int | None = None


def park(parking: Parking) -> bool:
    """Give up the lease of a run until it is woken; its attempt does not count. Raises LeaseLost if it holds none.

    False if it need not wait for its budget any more: an operator has decided meanwhile.
    """
    failpoint("park.begins")
    parked = _write(parking)
    failpoint("park.parked")
    return parked


@transaction.atomic
def _write(parking: Parking) -> bool:
    run = parking.run
    # The row is locked: a later decision finds the run parked, and wakes it.
    if parking.budget is not None and not budgets.is_spent(parking.budget):
        return False
    held = Task.objects.filter(pk=run.task, run_token=run.token).exclude(run_token="")
    if not held.update(run_token=""):
        raise LeaseLost
    failpoint("park.fenced")
    until = datetime.datetime.fromtimestamp(min(parking.until, LAST_SECOND), datetime.UTC)
    Run.objects.filter(pk=run.run, status=RunStatus.RUNNING, token=run.token).update(
        status=RunStatus.QUEUED,
        token="",
        lease_until=None,
        attempt=F("attempt") - 1,
        round=PARKED,
        due_at=until,
        parked_in=parking.step,
        said=parking.said,
        awaits=parking.awaits,
        waits_for_budget=parking.budget,
        request=note_attempt(run.request, AttemptBefore.of(run.token, run.attempt)),
    )
    return True


def wake() -> bool:
    """Queue parked runs whose wait is over, and announce them; return whether there may be more of them."""
    counts = [_wake(due) for due in (_list_due(), _list_answered())]
    return BATCH in counts


def _list_due() -> QuerySet[Run]:
    """Return the parked runs whose time has come."""
    return Run.objects.filter(IS_PARKED, due_at__lte=Now())


def _list_answered() -> QuerySet[Run]:
    """Return the parked runs whose awaited task has ended, asks its client, or was removed."""
    going = Task.objects.filter(pk=OuterRef("awaits")).exclude(state__in=TERMINAL | INTERRUPTED)
    return Run.objects.filter(IS_PARKED, ~Exists(going), awaits__isnull=False)


def _wake(due: QuerySet[Run]) -> int:
    """Give up to BATCH runs a round, and return their number."""
    if not due.exists():
        return 0
    queues = _give_rounds(due)
    if queues:
        failpoint("park.woken")
    for queue in queues:
        pubsub.publish(pubsub.RunQueued(queue))
    return queues.total()


@transaction.atomic
def _give_rounds(due: QuerySet[Run]) -> Counter[str]:
    """Let runs join rounds; return their number by queue. Runs that another transaction has locked are left."""
    free = due.order_by("due_at").select_for_update(skip_locked=True)
    found = list(free.only("pk", "queue", "share", "due_at")[:BATCH])
    if not found:
        return Counter()
    failpoint("park.waking")
    now = backend().read_clock()
    rounds = dict[tuple[str, str], int]()
    for run in found:
        turn = run.queue, run.share
        run.round = rounds.get(turn) or fair_queue.join_round(*turn)
        rounds[turn] = run.round + 1
        run.due_at = min(run.due_at, datetime.datetime.fromtimestamp(now, datetime.UTC))
    Run.objects.bulk_update(found, ["round", "due_at"])
    return Counter(run.queue for run in found)
