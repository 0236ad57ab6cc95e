"""How a task began: everything that is needed to begin it once more."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import msgspec

from a2a_tasks.audit import Action
from a2a_tasks.caller import Scope
from a2a_tasks.models import Message, Run, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import TaskNotFound
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit
from a2a_tasks.store.companions import Companion

__all__ = ["Beginning", "beginning", "noting_repetition"]

_message = msgspec.json.Decoder(values.Message).decode


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginning:
    """A task as it was accepted."""

    task: int
    id: str
    scope: Scope
    #: Who made it.
    principal: str
    context_id: str
    dialect: str
    #: What state it is in now.
    state: TaskState
    message: values.Message
    #: What was said beside the message, as the run has it.
    request: str


def beginning(task: int) -> Beginning | None:
    """How the task with this primary key began; None if the task, or what it began with, is not there any more."""
    row = Task.objects.select_related("context").filter(pk=task).first()
    message = Message.objects.filter(task_id=task, number=1).values_list("body", flat=True).first()
    run = Run.objects.filter(task_id=task, input_number=1).order_by("pk")
    request = run.values_list("request", flat=True).first()
    if row is None or message is None or request is None:
        return None
    return Beginning(
        task=task,
        id=row.public_id,
        scope=Scope(row.tenant, row.owner, row.agent),
        principal=row.maker or row.owner,
        context_id=row.context.public_id,
        dialect=row.origin_dialect,
        state=TaskState(row.state),
        message=_message(message),
        request=request,
    )


def noting_repetition(old: Beginning, new: str, actor: str) -> Companion:
    """What writes down that `actor` had the task `new` begin as the old one did, in the transaction that accepts it."""
    return functools.partial(_note, old, new, actor)


def _note(old: Beginning, new: str, actor: str, _: int) -> None:
    """The old one's row is held until then: what is purged or erased at this moment does not come back. Raises TaskNotFound."""
    row = Task.objects.filter(pk=old.task).select_for_update(no_key=True).only("pk").first()
    if row is None:
        raise TaskNotFound(taskId=old.id)
    audit.note(Action.TASK_RUN_AGAIN, old.id, scope=old.scope, actor=actor, detail={"new": new})
