"""The beginning of a task: all that a repetition needs."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import msgspec

from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Message, Run, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit
from a2a_tasks.store.hooks import Companion

__all__ = ["Beginning", "find_beginning", "note_repetition"]

_message = msgspec.json.Decoder(values.Message).decode


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginning:
    """A task as it was accepted."""

    task: int
    id: str
    scope: OwnerScope
    #: The principal who made it.
    principal: str
    context_id: str
    dialect: str
    #: Its current state.
    state: TaskState
    message: values.Message
    #: The request data of the first message, as in its run (`Run.request`).
    request: str


def find_beginning(task: int) -> Beginning | None:
    """Return the beginning of the task with this primary key; None if the task, its first message or run is gone."""
    row = Task.objects.select_related("context").filter(pk=task).first()
    message = Message.objects.filter(task_id=task, number=1).values_list("body", flat=True).first()
    run = Run.objects.filter(task_id=task, input_number=1).order_by("pk")
    request = run.values_list("request", flat=True).first()
    if row is None or message is None or request is None:
        return None
    return Beginning(
        task=task,
        id=row.public_id,
        scope=OwnerScope(row.tenant, row.owner, row.agent),
        principal=row.created_by or row.owner,
        context_id=row.context.public_id,
        dialect=row.origin_dialect,
        state=TaskState(row.state),
        message=_message(message),
        request=request,
    )


def note_repetition(old: Beginning, new: str, actor: str) -> Companion:
    """Return a companion of the transaction that accepts `new`: it records that `actor` repeated the old task."""
    return functools.partial(_note, old, new, actor)


def _note(old: Beginning, new: str, actor: str, _: int) -> None:
    """Lock the old task and record the repetition: a purged or erased task does not come back. Raises TaskNotFound."""
    row = Task.objects.filter(pk=old.task).select_for_update(no_key=True).only("pk").first()
    if row is None:
        raise TaskNotFound(taskId=old.id)
    audit.note(Action.TASK_RUN_AGAIN, old.id, scope=old.scope, actor=actor, detail={"new": new})
