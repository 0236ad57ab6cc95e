"""Tasks that wait for people: what each was asked, and on whose behalf an answer is given."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

from a2a_tasks.caller import Scope
from a2a_tasks.models import Run, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.records import Question

__all__ = ["KINDS", "Asked", "Place", "after", "asked", "waiting"]

#: What tasks wait for, as operators say it.
KINDS = {"answer": TaskState.INPUT_REQUIRED, "authorization": TaskState.AUTH_REQUIRED}


class Place(NamedTuple):
    """A place in the queue: since when a task waits, and its primary key."""

    since: datetime.datetime
    task: int


def waiting(kind: str = "") -> QuerySet[Task]:
    """The tasks that wait for people, oldest first, all or of a kind (index `task_waiting`)."""
    states = [KINDS[kind]] if kind else sorted(INTERRUPTED)
    return Task.objects.filter(is_task=True, state__in=states).order_by("status_at", "pk")


def after(rows: QuerySet[Task], place: Place) -> QuerySet[Task]:
    """Those of them behind the place, by row value, so that the index is walked from there."""
    later = Q(status_at__gt=place.since) | Q(pk__gt=place.task)
    return rows.filter(Q(status_at__gte=place.since) & later)


class Asked(NamedTuple):
    """Where a task stands that somebody wants to answer."""

    public_id: str
    scope: Scope
    state: TaskState
    #: Code of the dialect it was made in.
    dialect: str
    #: What is answered, if the task waits still when the answer comes.
    question: Question
    #: What the last message to it said beside it, as JSON (`Run.request`): for whom it runs.
    request: str

    @property
    def waits(self) -> bool:
        """Does it wait for its client?"""
        return self.state in INTERRUPTED


def asked(task: int) -> Asked | None:
    """What the task with this primary key waits for; None if it is gone, or no task that clients are shown."""
    row = Task.objects.filter(pk=task, is_task=True).first()
    if row is None:
        return None
    runs = Run.objects.filter(task_id=task).order_by("-input_number", "-pk")
    return Asked(
        public_id=row.public_id,
        scope=Scope(row.tenant, row.owner, row.agent),
        state=TaskState(row.state),
        dialect=row.origin_dialect,
        question=Question(task, row.last_event),
        request=runs.values_list("request", flat=True).first() or "",
    )
