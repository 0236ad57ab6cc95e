"""Notices of cancelled tasks that no process was working on (`Agent.cancelled`)."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from django.db import connection, transaction
from django.db.models import Q

from a2a_tasks.models import CancelNotice, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import clock
from a2a_tasks.store.backend.portable import describe_run
from a2a_tasks.store.records import ClaimedRun

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


def take(agents: Collection[str]) -> list[ClaimedRun]:
    """Take the notices for these agents: no other process gets them, so each is acted upon at most once."""
    if not CancelNotice.objects.filter(agent__in=agents).exists():  # nearly always
        return []
    with transaction.atomic():
        rows = CancelNotice.objects.filter(agent__in=agents).order_by("pk")
        if connection.features.has_select_for_update_skip_locked:
            rows = rows.select_for_update(skip_locked=True)
        runs = {row.pk: row.run for row in rows[:PORTION]}
        CancelNotice.objects.filter(pk__in=runs).delete()
    found = Run.objects.filter(pk__in=runs.values()).select_related("task__context")
    return [describe_run(run, run.task) for run in found]


def forget_old(max_count: int) -> int:
    """Delete notices that no process has taken, of agents that are gone, at most `max_count`; return their number."""
    old = CancelNotice.objects.filter(at__lt=clock.now() - KEPT).order_by("at")
    keys = list(old.values_list("pk", flat=True)[:max_count])
    return CancelNotice.objects.filter(pk__in=keys).delete()[0]
