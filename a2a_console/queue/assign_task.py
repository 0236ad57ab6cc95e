"""The assignment of a waiting task by an operator."""

from __future__ import annotations

import logging

from a2a_console.queue.assignments import UNCHECKED, assign
from a2a_tasks.store.db import run_in_thread

__all__ = ["UNCHECKED", "assign_by_key"]

logger = logging.getLogger(__name__)


async def assign_by_key(
    task: int, to: int | None, *, by: str, seen: int | None = UNCHECKED
) -> bool:
    """Assign the task with this primary key to the user `to` (None = unassign), for the operator `by`.

    `seen`: the assignee that the operator saw. Return whether anything changed; the audit log records a change. Raises
    TaskNotFound, TaskNotWaiting, TaskTaken, Overloaded. The callers check whether the user may have the task
    (`admin/tasks/assigning.py`).
    """
    changed = await run_in_thread(assign, task, to, seen=seen)
    if changed:
        logger.info("task %s was given to user %s by operator %s", task, to, by)
    return changed
