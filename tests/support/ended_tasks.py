"""Tasks that ended at moments of a test's choice."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

from django.utils import timezone

from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import make_task

__all__ = ["make_ended"]

_numbers = itertools.count()


def make_ended(
    state: TaskState = TaskState.COMPLETED,
    *,
    ago: timedelta = timedelta(),
    took: float = 1.0,
    agent: str = "demo",
    tenant: str = "",
) -> Task:
    """A task that ended so long ago and took so many seconds."""
    task = make_task(f"ended-{next(_numbers)}", state=state, agent=agent)
    at: datetime = timezone.now() - ago
    columns = {"status_at": at, "created_at": at - timedelta(seconds=took), "tenant": tenant}
    Task.objects.filter(pk=task.pk).update(**columns)
    task.refresh_from_db()
    return task
