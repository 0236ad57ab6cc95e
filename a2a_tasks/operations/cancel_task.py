"""CancelTask (A2A 1.0 §3.1.5), and cancellation by an operator."""

from __future__ import annotations

import contextlib
import logging

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.requests import CancelTaskRequest
from a2a_tasks.protocol.values import Task
from a2a_tasks.store import cancel
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.tasks import find_batched

__all__ = ["cancel_by_key", "cancel_task"]

logger = logging.getLogger(__name__)


async def cancel_task(request: CancelTaskRequest, call: CallContext) -> Task:
    """Cancel a task: its state is final at once, then its agent is stopped.

    Raises TaskNotFound, TaskNotCancelable; TaskNotWaiting if it does not ask `call.question`.
    """
    scope, asked = call.scope(request.tenant), call.question
    canceled = await run_in_thread(
        cancel.cancel, scope, request.id, request=call.request_id, question=asked
    )
    with contextlib.suppress(Overloaded):  # it is canceled, whether all of it can be read or not
        if found := await find_batched((scope, request.id)):
            return found.view
    return canceled


async def cancel_by_key(task: int, *, by: str) -> Task:
    """Cancel any task by its primary key, for the operator `by`. Raises TaskNotFound, TaskNotCancelable."""
    canceled = await run_in_thread(cancel.cancel_by_key, task)
    logger.info("task %s was canceled by operator %s", canceled.id, by)
    return canceled
