"""GetTask (A2A 1.0 §3.1.3)."""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.operations.history import trimmed
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.requests import GetTaskRequest
from a2a_tasks.protocol.values import Task
from a2a_tasks.store.tasks import finding

__all__ = ["get_task"]


async def get_task(request: GetTaskRequest, call: Call) -> Task:
    """The task as it stands. Raises TaskNotFound for a missing or foreign id."""
    found = await finding((call.scope(request.tenant), request.id))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    return trimmed(found.view, request.history_length)
