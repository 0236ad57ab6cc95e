"""GetTask (A2A 1.0 §3.1.3)."""

from __future__ import annotations

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.requests import GetTaskRequest
from a2a_tasks.protocol.values import Task
from a2a_tasks.store.tasks import find_batched

__all__ = ["get_task"]


async def get_task(request: GetTaskRequest, call: CallContext) -> Task:
    """Return the task in its present state. Raises TaskNotFound for a missing or foreign id."""
    found = await find_batched((call.scope(request.tenant), request.id))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    return found.view
