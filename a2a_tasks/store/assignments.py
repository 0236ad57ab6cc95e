"""Who among the staff sees to a task that waits for people."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from a2a_tasks.audit import Action, actor
from a2a_tasks.caller import Scope
from a2a_tasks.models import Assignment, Task
from a2a_tasks.protocol.errors import TaskNotFound, TaskNotWaiting, TaskTaken
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, log

__all__ = ["WHOEVER", "assign"]

#: Whoever has the task now, and if nobody has.
WHOEVER: Final = -1


@transaction.atomic
def assign(task: int, to: int | None, *, seen: int | None = WHOEVER) -> bool:
    """Give the task with this primary key to the user with that one; None = to nobody. Returns whether anything changed.

    `seen`: the user who has it as far as the operator knows, None = nobody. Raises TaskNotFound; TaskNotWaiting for a task
    that does not wait, unless it is released; TaskTaken if somebody else has it.
    """
    row = log.locked(pk=task)
    if row is None:
        raise TaskNotFound(taskId=str(task))
    if to is not None and TaskState(row.state) not in INTERRUPTED:
        raise TaskNotWaiting(f"The task is {TaskState(row.state).word}: it waits for nobody")
    has = Assignment.objects.filter(task=row).values_list("user_id", flat=True).first()
    if has == to:
        return False
    if seen not in (WHOEVER, has):
        raise TaskTaken("Somebody else has the task since you looked")
    _write(row, to)
    return True


def _write(task: Task, to: int | None) -> None:
    rows = Assignment.objects.filter(task=task)
    if to is None:
        rows.delete()
    else:
        columns = {"user_id": to, "by": actor(), "at": Now()}
        Assignment.objects.update_or_create(task=task, defaults=columns)
    scope = Scope(task.tenant, task.owner, task.agent)
    action = Action.TASK_RELEASE if to is None else Action.TASK_ASSIGN
    detail = None if to is None else {"to": f"user:{to}"}
    audit.note(action, task.public_id, scope=scope, detail=detail)
