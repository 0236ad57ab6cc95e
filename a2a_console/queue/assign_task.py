"""The assignment of a waiting task to a user of the staff by an operator."""

from __future__ import annotations

import logging
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from a2a_tasks.audit import Action, actor
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Assignment, Task
from a2a_tasks.protocol.errors import TaskNotFound, TaskNotWaiting, TaskTaken
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, event_log
from a2a_tasks.store.db import run_in_thread

__all__ = ["UNCHECKED", "assign_by_key"]

logger = logging.getLogger(__name__)
#: The value of `seen` that skips the check of the assignee.
UNCHECKED: Final = -1


async def assign_by_key(
    task: int, to: int | None, *, by: str, seen: int | None = UNCHECKED
) -> bool:
    """Assign the task with this primary key to the user `to` (None = unassign), for the operator `by`.

    `seen`: the assignee that the operator saw, None = none. Return whether anything changed; the audit log records a
    change. Raises TaskNotFound; TaskNotWaiting for a task that does not wait, unless it is unassigned; TaskTaken if the
    task has another assignee; Overloaded. The callers check whether the user may have the task.
    """
    changed = await run_in_thread(_assign, task, to, seen=seen)
    if changed:
        logger.info("task %s was given to user %s by operator %s", task, to, by)
    return changed


@transaction.atomic
def _assign(task: int, to: int | None, *, seen: int | None) -> bool:
    row = event_log.lock_task(pk=task)
    if row is None:
        raise TaskNotFound(taskId=str(task))
    if to is not None and TaskState(row.state) not in INTERRUPTED:
        raise TaskNotWaiting(
            f"The task is {TaskState(row.state).word}: it does not wait for an answer"
        )
    has = Assignment.objects.filter(task=row).values_list("user_id", flat=True).first()
    if has == to:
        return False
    if seen not in (UNCHECKED, has):
        raise TaskTaken("The task was assigned to another person in the meantime")
    _write(row, to)
    return True


def _write(task: Task, to: int | None) -> None:
    rows = Assignment.objects.filter(task=task)
    if to is None:
        rows.delete()
    else:
        columns = {"user_id": to, "by": actor(), "at": Now()}
        Assignment.objects.update_or_create(task=task, defaults=columns)
    scope = OwnerScope(task.tenant, task.owner, task.agent)
    action = Action.TASK_RELEASE if to is None else Action.TASK_ASSIGN
    detail = None if to is None else {"to": f"user:{to}"}
    audit.note(action, task.public_id, scope=scope, detail=detail)
