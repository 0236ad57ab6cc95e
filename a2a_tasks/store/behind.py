"""Runs behind an earlier one, of their task or in order of their context: they are not in the queue until it ends.

Such a run has the round BEHIND, which no claim reads. After the commit that ends a run, `release` gives a round to the
first one behind it. After the commit of a message that was put behind a run, `release` looks, too: that run may have
ended meanwhile. So of an end and a message at the same moment, at least one sees the other. If a process dies between
commit and look, `release_missed` finds the run. See docs/decisions/0007.
"""

from __future__ import annotations

import contextlib

from django.db.models import BooleanField, ExpressionWrapper
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import IS_BEHIND, Run, RunStatus
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.db import AWAY

__all__ = ["SLICE", "look_again", "release", "release_missed"]

#: Number of runs that one call of `release_missed` looks at.
SLICE = 200
UNFINISHED = (RunStatus.QUEUED, RunStatus.RUNNING)


def release(*, task: int | None = None, context: int | None = None) -> list[pubsub.Hint]:
    """Queue the first unfinished run of a task, or of an ordered context, if it waited for one that has ended.

    Returns the hint that the first one is due; empty = there is none. Call it after the commit.
    """
    which = {"ordered_in": context} if context is not None else {"task": task}
    unfinished = Run.objects.filter(**which, status__in=UNFINISHED).order_by("pk")
    first = unfinished.only("pk", "status", "round", "queue", "quota_key").first()
    if first is None or first.status != RunStatus.QUEUED:
        return []
    if first.is_behind:
        failpoint("behind.releasing")
        _release(first)
    return [pubsub.RunQueued(first.queue)]


def look_again(run: int) -> None:
    """After a run was put behind others, queue the first of them if their end came at the same moment, and announce it.

    The run is committed: if the database goes away now, `release_missed` looks later.
    """
    with contextlib.suppress(*AWAY):
        task, context = Run.objects.values_list("task_id", "ordered_in").get(pk=run)
        for hint in release(task=task) if context is None else release(context=context):
            pubsub.publish(hint)


def _release(run: Run) -> bool:
    """Give a run its round, unless it waits for another one still. It counts as due from now on."""
    alone = Run.objects.filter(IS_BEHIND, pk=run.pk).exclude(fair_queue.behind_another())
    place = fair_queue.join_round(run.queue, run.quota_key)
    return bool(alone.update(round=place, due_at=Now()))


def release_missed(after: int) -> int:
    """Queue those of the next SLICE runs behind others that wait for none, and announce them.

    `after` is the key of the last run of the slice before; returns that of this one, 0 after the last slice.
    """
    waits = ExpressionWrapper(fair_queue.behind_another(), output_field=BooleanField())
    rows = Run.objects.filter(IS_BEHIND, pk__gt=after).order_by("pk").annotate(waits=waits)
    found = list(rows.only("pk", "queue", "quota_key")[:SLICE])
    for run in found:
        if not run.waits and _release(run):
            pubsub.publish(pubsub.RunQueued(run.queue))
    return found[-1].pk if len(found) == SLICE else 0
