"""The answers of called tasks, as the steps of those that have called them keep them."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.values import UNSET, TaskState
from a2a_tasks.store.cancel import cancel_by_key
from a2a_tasks.store.tasks import find_by_key
from a2a_tasks.store.usage import sum_by_task

__all__ = ["read"]


def read(task: int, *, cancels: bool = False) -> dict[str, Any]:
    """Return the answer of a task as `agents.calls.CallAnswer` has it, with its agent as `callee`, and the `seconds` it took.

    If it `cancels`, the task is cancelled before.
    """
    if cancels:
        with contextlib.suppress(TaskNotFound, TaskNotCancelable):
            cancel_by_key(task)
    found = find_by_key(task)
    if found is None:  # retention, or a person's right to be forgotten
        ids = {"task_id": "", "context_id": ""}
        return {"callee": "", "seconds": None, "state": TaskState.FAILED.value, **ids}
    view, message = found.view, found.view.status.message
    artifacts = [] if view.artifacts is UNSET else view.artifacts
    usage = sum_by_task([task]).get(task, {})
    columns = ("agent", "status_at", "delegation__created_at")
    callee, settled_at, called_at = Task.objects.values_list(*columns).get(pk=task)
    return {
        "callee": callee,
        "seconds": max(0.0, (settled_at - called_at).total_seconds()),
        "state": view.status.state.value,
        "task_id": view.id,
        "context_id": view.context_id,
        "message": None if message is None else msgspec.json.decode(message),
        "artifacts": [msgspec.json.decode(artifact) for artifact in artifacts],
        "usage": {model: msgspec.to_builtins(sums) for model, sums in usage.items()},
    }
