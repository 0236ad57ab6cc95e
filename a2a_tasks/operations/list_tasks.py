"""ListTasks (A2A 1.0 §3.1.4)."""

from __future__ import annotations

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.requests import ListTasksRequest
from a2a_tasks.protocol.values import TaskPage
from a2a_tasks.store import tasks
from a2a_tasks.store.db import run_list_query

__all__ = ["list_tasks"]


async def list_tasks(request: ListTasksRequest, call: CallContext) -> TaskPage:
    """Return a page of the caller's tasks, latest status first. Raises InvalidParams for a bad page token."""
    return await run_list_query(tasks.list_tasks, call.scope(request.tenant), request)
