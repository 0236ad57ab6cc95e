"""An operator says who sees to a task that waits for people."""

from __future__ import annotations

import logging

from a2a_tasks.store.assignments import WHOEVER, assign
from a2a_tasks.store.hop import hop

__all__ = ["WHOEVER", "assign_by_key"]

logger = logging.getLogger(__name__)


async def assign_by_key(task: int, to: int | None, *, by: str, seen: int | None = WHOEVER) -> bool:
    """Give the task with this primary key to the user with that one, for the operator `by`; None = to nobody.

    `seen`: who has it as far as the operator knows. Returns whether anything changed; that is written down. Raises
    TaskNotFound, TaskNotWaiting, TaskTaken, Overloaded. Whether the user may have it the interfaces know (admin/assigning).
    """
    changed = await hop(assign, task, to, seen=seen)
    if changed:
        logger.info("task %s was given to user %s by operator %s", task, to, by)
    return changed
