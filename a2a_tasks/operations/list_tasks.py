"""ListTasks (A2A 1.0 §3.1.4)."""

from __future__ import annotations

from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskPage
from a2a_tasks.store import tasks
from a2a_tasks.store.hop import hop_for_list

__all__ = ["list_tasks"]


async def list_tasks(request: ListTasksRequest, call: Call) -> TaskPage:
    """A page of the caller's tasks, latest status first. Raises InvalidParams for a bad page token."""
    return await hop_for_list(tasks.list_tasks, call.scope(request.tenant), request)
