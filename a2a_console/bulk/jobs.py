"""Bulk jobs: an action on all tasks of a selection, done by a worker in slices.

A slice is written with its tasks before it begins, and counted when it has ended. So a job whose worker dies goes on
with its last slice, and no task of it is done twice: a cancelled task is recognised by its state, and a task that was
run again by the nonce.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from a2a_console.bulk.actions import ACTIONS, Choice, act
from a2a_console.rerun.run_again import MAX_NONCE_LENGTH
from a2a_console.search.key_ranges import last_key
from a2a_console.search.selection import page
from a2a_console.search.task_record import write_cells
from a2a_console.staff import within
from a2a_tasks import process_lifetime
from a2a_tasks.audit import Action, act_as, staff
from a2a_tasks.models import BulkJob, BulkResult, BulkState, Task
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.protocol.errors import Blame, Overloaded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, clock
from a2a_tasks.store.db import is_away, run_here

__all__ = ["OPEN", "SLICE", "begin", "find_obstacle", "is_due", "list_results", "stop", "work"]

logger = logging.getLogger(__name__)
_outage = ThrottledLogger(logger, "bulk jobs wait for the database")
#: Tasks of a slice, and the time for which it is a worker's own.
SLICE, LEASE = 100, timedelta(seconds=60)
#: Seconds that one call of `work` takes about.
TURN = 10.0
#: A task that the database refuses so many times, while it does others, counts as not done.
TRIES = 5
#: States of a job that goes on.
OPEN = (BulkState.QUEUED, BulkState.RUNNING)
#: Time for which jobs and their results are kept, and the results that are removed at once.
KEPT, REMOVED = timedelta(days=30), 1_000
#: The open jobs that this process has found to be of another release.
_strange: set[int] = set()
#: The number of times that the database refused a task, by the key of its result.
_refused = Counter[int]()
#: The jobs that this process could not give up, because of an outage or a lock; each with the end of its lease.
_still_held: dict[int, datetime] = {}


def begin(action: str, choice: Choice, *, user: Any, nonce: str, query: str = "") -> BulkJob:
    """Store a job for tasks that exist now, and audit it. The user's nonce of an earlier one returns that one."""
    columns: dict[str, Any] = {"action": action, "choice": choice.write(), "query": query}
    columns |= {"found": choice.found, "more": choice.more}
    columns["before"] = last_key(Task.objects.all()) + 1
    with transaction.atomic():
        job, is_new = BulkJob.objects.get_or_create(user=user, nonce=nonce, defaults=columns)
        if is_new:
            selected = choice.selection.describe()
            detail = {"action": action, "of": str(selected), "keys": len(choice.keys or ())}
            audit.note(Action.BULK_BEGIN, str(job.pk), detail=detail)
    return job


def stop(job: BulkJob) -> bool:
    """Stop the job after its slice, and audit it. False: it has ended."""
    with transaction.atomic():
        stopped = _end(job, BulkState.STOPPED)
        if stopped:
            audit.note(Action.BULK_STOP, str(job.pk))
    return stopped


def find_obstacle(job: BulkJob) -> str:
    """Return what this release does not know of the job, which another one has begun; empty = nothing."""
    if job.action not in ACTIONS:
        return f"the action {job.action!r}"
    try:
        Choice.read(job.choice)
    except msgspec.DecodeError as fault:
        return f"its choice of tasks ({fault})"
    return ""


def is_due() -> bool:
    """Return whether there is an open job, or one that is not kept any longer."""
    is_open, is_old = Q(state__in=OPEN), Q(created_at__lt=Now() - KEPT)
    return BulkJob.objects.filter(is_open & ~Q(pk__in=_strange) | is_old & ~is_open).exists()


def work() -> None:
    """Work on the open jobs for a while, then remove a few old results. Several processes may do so at once.

    A job that cannot go on now holds up no other: more runs than the host takes wait until a job cancels some.
    """
    for key, held_until in list(_still_held.items()):
        _give_up(key, held_until)
    until, passed = time.monotonic() + TURN, set[int]()
    while _may_go_on(until) and (job := run_here(_claim, passed)) is not None:
        try:
            with act_as(lambda: staff(job.user_id)):
                while _may_go_on(until) and _do_slice(job):
                    pass
        except Overloaded:  # it goes on at the next call
            passed.add(job.pk)
        except Exception as fault:
            if is_away(fault):
                _outage.warning(fault)
            else:
                logger.exception("job %s", job.pk)
            passed.add(job.pk)
        finally:
            _give_up(job.pk, job.held_until)
    run_here(_forget_tries)
    run_here(_remove_old)


def list_results(job: BulkJob) -> Iterator[str]:
    """Yield the results as CSV: key, id and outcome of each task, some rows at a time."""
    yield write_cells(("key", "id", "ok", "outcome"))
    last = 0
    while rows := list(BulkResult.objects.filter(job=job, pk__gt=last).order_by("pk")[:SLICE]):
        last = rows[-1].pk
        tasks = Task.objects.filter(pk__in=[row.task for row in rows])
        ids = dict(tasks.values_list("pk", "public_id"))
        lines = ((row.task, ids.get(row.task, ""), row.ok, row.outcome) for row in rows)
        yield "".join(map(write_cells, lines))


def _may_go_on(until: float) -> bool:
    return time.monotonic() < until and not process_lifetime.is_draining()


def _claim(passed: set[int]) -> BulkJob | None:
    """Take the oldest job that is free, if there is one. One whose row is locked is left alone until later."""
    free = Q(held_until=None) | Q(held_until__lt=Now())
    waiting = BulkJob.objects.filter(free, state__in=OPEN).select_related("user").order_by("pk")
    with transaction.atomic():
        rows = waiting.select_for_update(skip_locked=True, of=("self",))
        while job := rows.exclude(pk__in=passed | _strange).first():
            if obstacle := find_obstacle(job):
                logger.warning("job %s waits: this release does not know %s", job.pk, obstacle)
                _strange.add(job.pk)
                continue
            job.held_until = clock.now() + LEASE
            mine = {"state": BulkState.RUNNING, "held_until": job.held_until}
            BulkJob.objects.filter(pk=job.pk).update(**mine)
            return job
    return None


def _hold(job: BulkJob) -> bool:
    """Hold the job for another LEASE. False: it does not go on, or another worker has it."""
    held_until = clock.now() + LEASE
    mine = BulkJob.objects.filter(pk=job.pk, state=BulkState.RUNNING, held_until=job.held_until)
    if not mine.update(held_until=held_until):
        return False
    job.held_until = held_until
    return True


def _give_up(key: int, held_until: datetime | None) -> None:
    """Let other workers have the job, unless another one has it already; if that fails, at the next call of `work`."""
    mine = BulkJob.objects.filter(pk=key, held_until=held_until)
    try:
        run_here(mine.update, held_until=None)
        _still_held.pop(key, None)
    except Overloaded:
        if held_until:
            _still_held[key] = held_until


def _do_slice(job: BulkJob) -> bool:
    """Do the slice under way, or the next one. False: the job goes on no more."""
    rows = run_here(_begin_slice, job)
    if rows is None:
        return False
    for row in rows:
        is_late = job.held_until and clock.moment(clock.estimate()) > job.held_until - LEASE / 2
        if process_lifetime.is_draining() or (is_late and not run_here(_hold, job)):
            return False
        row.ok, row.outcome = _act(job, row)
    if any(row.ok is None for row in rows):
        raise Overloaded  # those that the database refused are tried again, with the slice
    return run_here(_count, job, rows)


def _begin_slice(job: BulkJob) -> list[BulkResult] | None:
    """Return the slice under way, or the next one. None: the job goes on no more."""
    if not _hold(job):
        return None
    if not (job.user.is_active and job.user.has_perm(ACTIONS[job.action].permission)):
        _end(job, BulkState.STOPPED)
        return None
    rows = list(BulkResult.objects.filter(job=job, pk__gt=job.counted).order_by("pk")[:SLICE])
    return _take(job) if not rows and job.before else rows


def _take(job: BulkJob) -> list[BulkResult]:
    """Find the tasks of the next slice, and write them down; there may be none yet."""
    action = ACTIONS[job.action]
    choice = Choice.read(job.choice)
    wanted = choice.selection
    states = wanted.states & action.states if wanted.states else action.states
    rows: QuerySet[Task] = within(Task.objects.only("pk"), job.user)
    if choice.keys is not None:
        rows = rows.filter(pk__in=choice.keys)
    found = page(rows.filter(state__in=states), wanted, size=SLICE, before=job.before)
    before = found.older or 0
    with transaction.atomic():
        mine = BulkJob.objects.filter(pk=job.pk, held_until=job.held_until)
        if not mine.update(before=before):
            return []  # a worker that stood still meanwhile
        made = [BulkResult(job=job, task=task.pk) for task in found.items]
        BulkResult.objects.bulk_create(made)
    job.before = before
    return made


def _act(job: BulkJob, row: BulkResult) -> tuple[bool | None, str]:
    """Do the action to one task; return whether that is done, and what to tell. Raises the faults of an outage.

    None: the database refused this task, and it is to be tried again.
    """
    by, nonce = job.user.get_username(), f"job {job.pk} {job.nonce}"[:MAX_NONCE_LENGTH]
    try:
        outcome = act(ACTIONS[job.action], row.task, by=by, nonce=nonce)
    except Exception as fault:
        if isinstance(fault, Overloaded) and fault.blame is not Blame.NOBODY:
            return _refuse(row, fault)
        if isinstance(fault, Overloaded) or is_away(fault):
            raise
        logger.exception("job %s: task %s", job.pk, row.task)
        return False, f"the host failed: {type(fault).__name__}"
    # An earlier try of the slice may have done it.
    again = Task.objects.filter(pk=row.task, state=TaskState.CANCELED)
    is_done = outcome.kind == "done" or (outcome.kind == "ended" and run_here(again.exists))
    return is_done, "canceled" if outcome.kind == "ended" and is_done else outcome.text[:200]


def _refuse(row: BulkResult, fault: Overloaded) -> tuple[bool | None, str]:
    """Count a try that the database refused. It fails the task, not the job: its row is locked or damaged, say."""
    _refused[row.pk] += 1
    if _refused[row.pk] < TRIES:
        return None, ""
    reason = str(fault.__cause__ or fault).partition("\n")[0]
    return False, f"the database refused it {_refused[row.pk]} times: {reason}"[:200]


def _forget_tries() -> None:
    """Forget the tries of tasks whose slice was counted, here or elsewhere, or whose job goes on no more."""
    if _refused:
        rows = BulkResult.objects.filter(pk__in=_refused, job__state__in=OPEN)
        under_way = rows.filter(pk__gt=F("job__counted")).values_list("pk", flat=True)
        for key in _refused.keys() - set(under_way):
            del _refused[key]


def _count(job: BulkJob, rows: list[BulkResult]) -> bool:
    """Count the slice, if no other worker has. False: the job has ended."""
    if not rows and not job.before:
        _end(job, BulkState.ENDED)
        return False
    if not rows:
        return True
    done, last = sum(bool(row.ok) for row in rows), rows[-1].pk
    sums = {"done": F("done") + done, "failed": F("failed") + len(rows) - done}
    with transaction.atomic():
        mine = BulkJob.objects.filter(pk=job.pk, counted=job.counted)
        is_counted = bool(mine.update(counted=last, **sums))
        if is_counted:
            BulkResult.objects.bulk_update(rows, ["ok", "outcome"])
    job.counted = last
    return is_counted


def _end(job: BulkJob, state: BulkState) -> bool:
    rows = BulkJob.objects.filter(pk=job.pk, state__in=OPEN)
    return bool(rows.update(state=state, held_until=None, ended_at=Now()))


def _remove_old() -> None:
    """Remove the results of the oldest job that is not kept any longer, then the job."""
    old = BulkJob.objects.filter(created_at__lt=Now() - KEPT).exclude(state__in=OPEN)
    job = old.order_by("pk").first()
    if job is None:
        return
    keys = BulkResult.objects.filter(job=job).order_by("pk").values_list("pk", flat=True)
    if some := list(keys[:REMOVED]):
        BulkResult.objects.filter(pk__in=some).delete()
    else:
        job.delete()
