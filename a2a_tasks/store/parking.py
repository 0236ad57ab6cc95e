"""Parked runs: rows that hold no slot until their time has come, or until the task that they await has ended.

A parked run is a queued one, so that runs behind it still wait, and a cancel ends it at once. Its round is PARKED,
which lies behind those that claims read. `wake` gives it a round as if it were new.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import IS_PARKED, PARKED, WAITS_FOR_TASKS, Run, RunStatus, Step, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, LogEvent
from a2a_tasks.store import budget_room, delegations, segments
from a2a_tasks.store.backend import call_news, fair_queue
from a2a_tasks.store.backend.server import is_server, read_clock
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from a2a_tasks.store.segments import EndSegment
from a2a_tasks.telemetry.trace_context import AttemptBefore, note_attempt

__all__ = ["LAST_SECOND", "Parking", "park", "shift_waits", "wake", "wake_callers"]
__all__ += ["wake_next"]

#: Maximum number of runs woken in one transaction.
BATCH = 1000
#: Seconds after which a run that waits for a new window of a budget looks again, if it was not woken.
PATIENCE = 60
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
    #: The names of the calls whose ends wake it before.
    calls: Sequence[str] = ()
    #: The key of the sum of a budget that has nothing left for it.
    budget: int | None = None


def park(parking: Parking) -> bool:
    """Give up the lease of a run until it is woken; its attempt does not count. Raises LeaseLost if it holds none.

    False if it need not wait any more: an operator has decided about its budget, or its calls have ended.
    """
    failpoint("park.begins")
    recorded = _write(parking)
    failpoint("park.parked")
    if recorded:
        pubsub.publish(pubsub.Committed(parking.run.task, recorded[-1].number, recorded))
    return recorded is not None


@transaction.atomic
def _write(parking: Parking) -> list[LogEvent] | None:
    """Return the events of the wait; None if it need not wait."""
    run = parking.run
    # The sum is locked: a later search for runs to wake finds this one.
    if parking.budget is not None and not budget_room.must_wait(parking.budget, run.key):
        return None
    held = Task.objects.filter(pk=run.task, run_token=run.token).exclude(run_token="")
    if not held.update(run_token=""):
        raise LeaseLost
    if parking.calls and not delegations.note_waits(run, parking.calls):
        transaction.set_rollback(True)
        return None
    failpoint("park.fenced")
    until = datetime.datetime.fromtimestamp(min(parking.until, LAST_SECOND), datetime.UTC)
    Run.objects.filter(pk=run.key, status=RunStatus.RUNNING, token=run.token).update(
        status=RunStatus.QUEUED,
        token="",
        lease_until=None,
        attempt=F("attempt") - 1,
        round=PARKED,
        due_at=until,
        parked_in=parking.step,
        said=parking.said,
        awaits=parking.awaits,
        awaits_calls=bool(parking.calls),
        waits_for_budget=parking.budget,
        request=note_attempt(run.request, AttemptBefore.of(run.token, run.attempt)),
        past=EndSegment(segments.PARKED, parking.step),
    )
    return delegations.tell_waits(run) if parking.calls else []


def shift_waits(seconds: float) -> None:
    """Keep the lengths of waits when the clock of this process was set back by these seconds, which are negative.

    It concerns databases whose clock is that of the host's only process.
    """
    if not is_server():
        _shift_waits(seconds)


@transaction.atomic
def _shift_waits(seconds: float) -> None:
    """Move the ends of waits; the kept step of a wait has its end, too."""
    waiting = Run.objects.filter(IS_PARKED, waits_for_budget=None, due_at__gt=Now())
    for run in waiting.only("task_id", "input_number", "parked_in", "due_at"):
        if run.due_at.year < datetime.MAXYEAR:  # else it has no end
            later = run.due_at + datetime.timedelta(seconds=seconds)
            Run.objects.filter(pk=run.pk).update(due_at=later)
        turn = Step.objects.filter(task=run.task_id, input_number=run.input_number)
        for step in turn.filter(name=run.parked_in):
            until = float(step.result) + seconds
            Step.objects.filter(pk=step.pk).update(result=write(until).decode())


def wake() -> bool:
    """Queue parked runs whose wait is over, and announce them; return whether there may be more of them.

    Of the runs that wait for other tasks, it wakes those whose task has ended lately.
    """
    counts = [_wake(due) for due in (_list_due().order_by("due_at"), *_list_answered())]
    counts += map(_wake_for_budget, budget_room.list_roomy())
    return BATCH in counts


def wake_next(after: int) -> int:
    """Look at the next BATCH runs that wait for other tasks, after a key, and wake those whose tasks have ended at any time.

    Return the key of the last one; 0 = there are no more.
    """
    waiting = Run.objects.filter(IS_PARKED, WAITS_FOR_TASKS, pk__gt=after).order_by("pk")
    keys = list(waiting.values_list("pk", flat=True)[:BATCH])
    for due in (_list_settled(), _list_called()) if keys else ():
        _wake(due.filter(pk__gt=after, pk__lte=keys[-1]))
    return keys[-1] if len(keys) == BATCH else 0


def wake_callers(tasks: Collection[int]) -> int:
    """Queue the parked runs of these tasks whose calls have all ended; return their number."""
    return _wake(_list_called().filter(task__in=tasks)) if tasks else 0


def _list_due() -> QuerySet[Run]:
    """Return the parked runs whose time has come.

    Those that wait for a budget are woken with its new window, as many as it has room for. The others look again later.
    """
    others = Q(waits_for_budget=None) | Q(due_at__lte=Now() - datetime.timedelta(seconds=PATIENCE))
    return Run.objects.filter(IS_PARKED, others, due_at__lte=Now())


def _list_called() -> QuerySet[Run]:
    """Return the parked runs whose calls have all ended."""
    waiting = Run.objects.filter(IS_PARKED, awaits_calls=True)
    return waiting.filter(~Exists(delegations.AWAITED))


def _list_settled() -> QuerySet[Run]:
    """Return the parked runs whose awaited task has ended, asks its client, or was removed."""
    going = Task.objects.filter(pk=OuterRef("awaits")).exclude(state__in=TERMINAL | INTERRUPTED)
    return Run.objects.filter(IS_PARKED, ~Exists(going), awaits__isnull=False)


def _list_answered() -> list[QuerySet[Run]]:
    """Return the parked runs whose awaited task has ended or asks its client, lately."""
    waiting = Run.objects.filter(IS_PARKED, awaits__isnull=False)
    if not waiting.exists():  # on most hosts
        return []
    settled = call_news.filter_settled(delegations.RECENT[1])
    return [waiting.filter(awaits__in=tasks.values("pk")) for tasks in settled]


def _wake(due: QuerySet[Run]) -> int:
    """Give up to BATCH runs a round, and return their number.

    The first one is looked for in the order of the query: for any one, PostgreSQL would walk over the table of runs, as
    most of them lie in the past.
    """
    if not due.values("pk")[:1]:
        return 0
    return _announce(_give_rounds(due))


def _announce(queues: Counter[str]) -> int:
    """Announce runs that were woken, by queue, and return their number."""
    if queues:
        failpoint("park.woken")
    for queue in queues:
        pubsub.publish(pubsub.RunQueued(queue))
    return queues.total()


def _wake_for_budget(use: int) -> int:
    """Wake as many runs as a sum has room for, those that were accepted first, and return their number."""
    return _announce(_give_rounds_for(use))


@transaction.atomic
def _give_rounds_for(key: int) -> Counter[str]:
    use = budget_room.lock_waited(key)
    waiting = Run.objects.filter(IS_PARKED, waits_for_budget=key).order_by("pk")
    first = waiting.values_list("task", flat=True).first()
    if use is None:
        return Counter()
    if first is None:
        budget_room.stop_looking(use)
        return Counter()
    count = budget_room.count_admissible(use, first)
    keys = list(
        waiting.values_list("pk", flat=True)[: BATCH if count is None else min(count, BATCH)]
    )
    if count is not None:
        budget_room.note_woken(use, keys)
    return _give_rounds(waiting.filter(pk__in=keys))


@transaction.atomic
def _give_rounds(due: QuerySet[Run]) -> Counter[str]:
    """Let runs join rounds; return their number by queue. Runs that another transaction has locked are left."""
    free = due.order_by("due_at").select_for_update(skip_locked=True)
    found = list(free.only("pk", "queue", "quota_key", "due_at")[:BATCH])
    if not found:
        return Counter()
    failpoint("park.waking")
    now = read_clock()
    rounds = dict[tuple[str, str], int]()
    for run in found:
        turn = run.queue, run.quota_key
        run.round = rounds.get(turn) or fair_queue.join_round(*turn)
        rounds[turn] = run.round + 1
        run.due_at = min(run.due_at, datetime.datetime.fromtimestamp(now, datetime.UTC))
    Run.objects.bulk_update(found, ["round", "due_at"])
    return Counter(run.queue for run in found)
