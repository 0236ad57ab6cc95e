"""Cancellation: the task becomes CANCELED and is taken from its run, committed before any announcement."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Delegation, Run, RunStatus, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import TaskNotCancelable, TaskNotFound, TaskNotWaiting
from a2a_tasks.protocol.lifecycle import TERMINAL, LogEvent
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, cancel_notices, event_log
from a2a_tasks.store.behind import release
from a2a_tasks.store.delegations import find_question
from a2a_tasks.store.scoping import visible_to
from a2a_tasks.store.tasks import view

__all__ = ["cancel", "cancel_by_key", "cancel_calls"]

#: Maximum number of called tasks that one look cancels, and that a request cancels with its task; others follow at a look.
BATCH, AT_ONCE = 1000, 100


def cancel(
    scope: OwnerScope, public_id: str, *, request: str = "", question: int = 0
) -> values.Task:
    """Cancel a task of this scope; return it without history and artifacts. `request` is its id, for the audit log.

    Raises TaskNotFound, TaskNotCancelable.

    `question`: the number of the event with the question that the client gives up; 0 = cancel in any case. Raises
    TaskNotWaiting if the task does not ask this.
    """
    if "\x00" in public_id:
        raise TaskNotFound(taskId=public_id)
    by = _By(public_id, scope.principal, request, question=question)
    return _cancel(by, Q(public_id=public_id) & visible_to(scope))


def cancel_by_key(task: int) -> values.Task:
    """Cancel any task, as `cancel` does; the audit log names the current actor (audit/actor.py). Raises TaskNotFound, TaskNotCancelable."""
    return _cancel(_By(str(task)), Q(pk=task))


def cancel_calls(parents: Collection[int] = (), *, limit: int = BATCH) -> None:
    """Cancel the tasks that are marked because those that called them were cancelled, or have ended.

    They are those of these parents and below, breadth first; without parents all. One task is one transaction, and
    marks those that it has called.
    """
    frontier = list(parents)
    while limit > 0:
        marked = Delegation.objects.filter(cancel=True).order_by("depth", "pk")
        if frontier:
            marked = marked.filter(parent__in=frontier)
        rows = list(marked.values_list("pk", "child", "root")[:limit])
        if not rows:
            return
        limit -= len(rows)
        frontier = [child for _, child, _ in rows] if parents else []
        for row, child, root in rows:
            failpoint("call.cancelling")
            with contextlib.suppress(TaskNotFound, TaskNotCancelable):
                _cancel(_By(str(child), root=root), Q(pk=child), with_calls=False)
            Delegation.objects.filter(pk=row).update(cancel=False)


class _By(NamedTuple):
    """The name of the task in errors, and the actor and the request id for the audit log."""

    name: str
    actor: str | None = None
    request: str | None = None
    #: The key of the root of the tree, if the task is cancelled with those that called it.
    root: int = 0
    #: The number of the event with the question that the client gives up; 0 = none.
    question: int = 0


def _cancel(by: _By, which: Q, *, with_calls: bool = True) -> values.Task:
    open_before = Task.objects.filter(which).exclude(state__in=TERMINAL).exists()
    task, recorded, runs = _write(by, which, open_before=open_before)
    if recorded is None:
        return view(task)
    pubsub.publish(pubsub.Committed(task.pk, recorded.number, [recorded]))
    for run in runs:
        pubsub.publish(pubsub.Stop(run))
    for context in filter(None, set(runs.values())):
        for hint in release(context=context):
            pubsub.publish(hint)
    if with_calls:
        cancel_calls([task.pk], limit=AT_ONCE)
    return view(task)


@transaction.atomic
def _write(
    by: _By, which: Q, *, open_before: bool
) -> tuple[Task, LogEvent | None, dict[int, int | None]]:
    """Return the task, the event, and the cancelled runs with the context in which they are ordered."""
    task = event_log.lock_task(which)
    if task is None:
        raise TaskNotFound(taskId=by.name)
    state = TaskState(task.state)
    # Another request cancelled it meanwhile: both succeed (A2A 1.0 §3.1.5).
    if state is TaskState.CANCELED and open_before:
        return task, None, {}
    if state in TERMINAL:
        raise TaskNotCancelable(f"The task is {state.word}", taskId=task.public_id)
    if by.question and by.question != find_question(task):
        raise TaskNotWaiting("The task does not ask this, or not any more", taskId=by.name)
    cancel_notices.note(task)
    active = Run.objects.filter(task=task, status__in=[RunStatus.RUNNING, RunStatus.QUEUED])
    runs = dict(active.values_list("pk", "ordered_in"))
    active.update(status=RunStatus.CANCELED, token="", lease_until=None, ended_at=Now())
    scope = OwnerScope(task.tenant, task.owner, task.agent)
    calls = Delegation.objects.filter(parent=task, open=True).update(open=False, cancel=True)
    detail: dict[str, Any] = {"calls": calls} if calls else {}
    if by.root:
        names = Task.objects.filter(pk=by.root).values_list("public_id", flat=True)
        detail["by"] = names.first() or ""
    who, request = by.actor, by.request
    audit.note(
        Action.TASK_CANCEL, task.public_id, scope=scope, actor=who, request=request, detail=detail
    )
    return task, event_log.change_state(task, TaskState.CANCELED, at=event_log.now()), runs
