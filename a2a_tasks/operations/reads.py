"""GetTask and ListTasks (A2A 1.0 §3.1.3, §3.1.4), and the dialect in which a task was made."""

from __future__ import annotations

from a2a_tasks.caller import OwnerScope
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.requests import GetTaskRequest, ListTasksRequest
from a2a_tasks.protocol.values import Task, TaskPage
from a2a_tasks.store import tasks
from a2a_tasks.store.db import run_in_thread

__all__ = ["get_task", "list_tasks", "origin_of"]


async def get_task(request: GetTaskRequest, call: CallContext) -> Task:
    """Return the task in its present state. Raises TaskNotFound for a missing or foreign id."""
    found = await tasks.find_batched((call.scope(request.tenant), request.id))
    if found is None:
        raise TaskNotFound(taskId=request.id)
    return found.view


async def list_tasks(request: ListTasksRequest, call: CallContext) -> TaskPage:
    """Return a page of the caller's tasks, latest status first. Raises InvalidParams for a bad page token."""
    return await tasks.list_in_turn(call.scope(request.tenant), request)


async def origin_of(scope: OwnerScope, task_id: str) -> str:
    """Return the code of the dialect, for requests whose dialect nothing else decides; empty for a missing or foreign task."""
    with limit_waiting():
        return await run_in_thread(tasks.origin, scope, task_id)
