"""CancelTask (A2A 1.0 §3.1.5), and the same act by an operator."""

from __future__ import annotations

import logging

from a2a_tasks.operations.call import Call
from a2a_tasks.operations.history import trimmed
from a2a_tasks.protocol.requests import CancelTaskRequest
from a2a_tasks.protocol.values import Task
from a2a_tasks.store import cancel
from a2a_tasks.store.hop import hop

__all__ = ["cancel_by_key", "cancel_task"]

logger = logging.getLogger(__name__)


async def cancel_task(request: CancelTaskRequest, call: Call) -> Task:
    """Cancel a task: it is final at once, then its agent is stopped. Raises TaskNotFound, TaskNotCancelable."""
    canceled = await hop(
        cancel.cancel,
        call.scope(request.tenant),
        request.id,
        request=call.request_id,
    )
    return trimmed(canceled, request.history_length)


async def cancel_by_key(task: int, *, by: str) -> Task:
    """Cancel any task by its primary key, for the operator `by`. Raises TaskNotFound, TaskNotCancelable."""
    canceled = await hop(cancel.cancel_by_key, task)
    logger.info("task %s was canceled by operator %s", canceled.id, by)
    return canceled
