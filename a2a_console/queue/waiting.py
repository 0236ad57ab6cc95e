"""Tasks that wait for people, with their questions and the callers on whose behalf they are answered."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Delegation, Run, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.records import StoredQuestion

__all__ = ["KINDS", "PendingQuestion", "QueuePlace", "after", "find_question", "list_waiting"]

#: The operators' words for the states in which tasks wait.
KINDS = {"answer": TaskState.INPUT_REQUIRED, "authorization": TaskState.AUTH_REQUIRED}


class QueuePlace(NamedTuple):
    """A place in the queue: the moment since which a task waits, and its primary key."""

    since: datetime.datetime
    task: int


def list_waiting(kind: str = "") -> QuerySet[Task]:
    """Return the tasks that wait for people, oldest first, all or of one kind (index `task_inbox`).

    A question that also stands in the tasks that have called the one that asks is listed once.
    """
    states = [KINDS[kind]] if kind else sorted(INTERRUPTED)
    restated = Delegation.objects.filter(parent=OuterRef("pk"), open=True, relayed__isnull=False)
    asking = Task.objects.filter(~Exists(restated), is_task=True, state__in=states)
    return asking.order_by("status_at", "pk")


def after(rows: QuerySet[Task], place: QueuePlace) -> QuerySet[Task]:
    """Return the rows behind the place, by row value, so that the index scan begins there."""
    later = Q(status_at__gt=place.since) | Q(pk__gt=place.task)
    return rows.filter(Q(status_at__gte=place.since) & later)


class PendingQuestion(NamedTuple):
    """A task that an operator wants to answer."""

    public_id: str
    scope: OwnerScope
    state: TaskState
    #: The code of the dialect in which it was created.
    dialect: str
    #: The question to answer, if the task still waits when the answer comes.
    question: StoredQuestion
    #: The request data of the last message to the task as JSON (`Run.request`), with the caller for whom it runs.
    request: str

    @property
    def waits(self) -> bool:
        """True if the task waits for its client."""
        return self.state in INTERRUPTED


def find_question(task: int) -> PendingQuestion | None:
    """Return the question of the task with this primary key; None if the task does not exist for clients."""
    row = Task.objects.filter(pk=task, is_task=True).first()
    if row is None:
        return None
    runs = Run.objects.filter(task_id=task).order_by("-input_number", "-pk")
    return PendingQuestion(
        public_id=row.public_id,
        scope=OwnerScope(row.tenant, row.owner, row.agent),
        state=TaskState(row.state),
        dialect=row.origin_dialect,
        question=StoredQuestion(task, row.last_event),
        request=runs.values_list("request", flat=True).first() or "",
    )
