"""Notices of cancelled tasks that no process was working on (`Agent.cancelled`)."""

from __future__ import annotations

import bisect
import datetime
import itertools
from collections.abc import Collection

from django.db import connection, transaction
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from a2a_tasks.models import CancelNotice, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import clock
from a2a_tasks.store.backend.portable import describe_run
from a2a_tasks.store.backend.statements import Bytes, allow_rows
from a2a_tasks.store.records import CLAIM_BYTES, ClaimedRun

__all__ = ["forget_old", "note", "take"]

#: Most notices that a process takes at once.
PORTION = 100
#: The age at which a notice is removed that no process has taken.
KEPT = datetime.timedelta(days=1)


def note(task: Task) -> None:
    """Note that a task is being cancelled, unless a process works on it, or none has begun. It is a part of a transaction.

    A run whose question is written may not have ended yet: its agent has, or is about to.
    """
    runs = Run.objects.filter(task=task)
    begun = Q(started_at__isnull=False)
    found = runs.order_by("-pk").values_list("pk", "status").first()
    works = found is not None and found[1] == RunStatus.RUNNING
    asks = TaskState(task.state) in INTERRUPTED
    if found is None or (works and not asks) or not runs.filter(begun).exists():
        return
    CancelNotice.objects.create(run=found[0], agent=task.agent)


def take(
    agents: Collection[str], deaf: Collection[str] = (), *, any_one: bool = False
) -> list[ClaimedRun]:
    """Take notices for these agents, of CLAIM_BYTES together, but at least one; those for `deaf` agents are removed unread.

    `any_one`: take a single one, whichever; otherwise the oldest ones.

    No other process gets them, so each is acted upon at most once. A notice that cannot be read stays.
    """
    notices = CancelNotice.objects.filter(agent__in=[*agents, *deaf])
    if not notices.exists():  # nearly always
        return []
    with transaction.atomic():
        if connection.features.has_select_for_update_skip_locked:
            notices = notices.select_for_update(skip_locked=True)
        rows = list(notices.order_by("?")[:1] if any_one else notices.order_by("pk")[:PORTION])
        sizes = _sizes([row.run for row in rows if row.agent in agents])
        sums = list(itertools.accumulate(sizes.get(row.run, 0) for row in rows))
        count = max(1, bisect.bisect(sums, CLAIM_BYTES))
        runs = sizes.keys() & {row.run for row in rows[:count]}
        with allow_rows(sum(sizes[run] for run in runs)):
            found = Run.objects.filter(pk__in=runs).select_related("task__context")
            taken = [describe_run(run, run.task) for run in found]
        CancelNotice.objects.filter(pk__in=[row.pk for row in rows[:count]]).delete()
    return taken


def _sizes(runs: Collection[int]) -> dict[int, int]:
    """Return the bytes of the runs that still exist, with those of their tasks and messages."""
    messages = Message.objects.filter(task=OuterRef("task"), number=OuterRef("input_number"))
    said = Coalesce(Subquery(messages.values(bytes=Bytes("body"))), 0)
    size = said + Bytes("request") + Bytes("task__memory") + Bytes("task__status_message")
    return dict(Run.objects.filter(pk__in=runs).values_list("pk", size))


def forget_old(max_count: int) -> int:
    """Delete notices that no process has taken, of agents that are gone, at most `max_count`; return their number."""
    old = CancelNotice.objects.filter(at__lt=clock.now() - KEPT).order_by("at")
    keys = list(old.values_list("pk", flat=True)[:max_count])
    return CancelNotice.objects.filter(pk__in=keys).delete()[0]
