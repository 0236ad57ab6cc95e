"""Requests that may come again: remembered in the transaction that accepts them, and recalled as they were accepted.

The unique name is the whole guarantee: of two that are accepted at once, the second waits for the first, then its
transaction is undone as a whole.
"""

from __future__ import annotations

import datetime
import functools
from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import Idempotency, Run, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import IdempotencyConflict, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded, fold
from a2a_tasks.protocol.values import Raw, TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.legal_holds import unheld
from a2a_tasks.store.records import Accepted, status_of
from a2a_tasks.store.scoping import reaches
from a2a_tasks.store.tasks import view

__all__ = [
    "IdempotencyKey",
    "KeyTaken",
    "PreviousSend",
    "forget_idempotency",
    "recall",
    "remember",
]


class KeyTaken(Exception):
    """Another request was accepted under this key at the same moment; nothing was written."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """By what a request is known again, and what it has to be like."""

    scope: OwnerScope
    name: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviousSend:
    """A request that was accepted before: as it was then, and how far its task is now."""

    accepted: Accepted
    #: Is it settled that its client gets a task?
    is_task: bool
    last_event: int
    #: Its task has ended, and retention has left the end alone.
    over: bool = False


def remember(key: IdempotencyKey) -> Companion:
    """Return a function that writes the key beside the task, in the accepting transaction. It raises KeyTaken."""
    return functools.partial(_remember, key)


def _remember(key: IdempotencyKey, task: int) -> None:
    newest = Run.objects.filter(task_id=task).order_by("-pk")  # the task is locked: it is ours
    run, number = newest.values_list("pk", "task__last_event")[0]
    try:
        Idempotency.objects.create(
            **_scope(key),
            name=key.name,
            fingerprint=key.fingerprint,
            task_id=task,
            number=number,
            run=run,
        )
    except IntegrityError as fault:
        raise KeyTaken from fault


def recall(key: IdempotencyKey, scope: OwnerScope) -> PreviousSend | None:
    """Return the send that was accepted under this key; None if there was none, or too long ago.

    Raises IdempotencyConflict if that was another request, TaskNotFound if its task is out of the scope's reach: the key
    stays taken, so that nothing else can begin under it.
    """
    row = _rows(key).first()
    if row is None:
        return None
    if row.expired:  # type: ignore[attr-defined]  # annotated
        Idempotency.objects.filter(pk=row.pk).delete()
        return None
    if row.fingerprint != key.fingerprint:
        raise IdempotencyConflict
    if not reaches(scope, row.task):  # it is not shared any more
        raise TaskNotFound(taskId=row.task.public_id)
    return _make_previous(row, row.task)


def _scope(key: IdempotencyKey) -> dict[str, str]:
    return {"tenant": key.scope.tenant, "owner": key.scope.owner, "agent": key.scope.agent}


def _rows(key: IdempotencyKey) -> QuerySet[Idempotency]:
    oldest = Now() - datetime.timedelta(hours=float(conf.IDEMPOTENCY_HOURS))
    expired = ExpressionWrapper(Q(created_at__lte=oldest), output_field=BooleanField())
    found = Idempotency.objects.filter(**_scope(key), name=key.name)
    return found.select_related("task__context").annotate(expired=expired)


def _make_previous(row: Idempotency, task: Task) -> PreviousSend:
    events = _events(task.pk, row.number)
    whole = len(events) == row.number
    accepted = Accepted(
        task=task.pk,
        number=row.number if whole else task.last_event,
        run=row.run,
        view=fold(_make_initial_task(task), events) if whole else view(task),
    )
    return PreviousSend(
        accepted=accepted,
        is_task=task.is_task,
        last_event=task.last_event,
        over=not whole and TaskState(task.state) in TERMINAL,
    )


def _events(task: int, through: int) -> list[Recorded]:
    """The events of a task up to a number; fewer if retention has removed some."""
    found: list[Recorded] = []
    while not found or found[-1].number < through:
        after = found[-1].number if found else 0
        events = event_log.read_after(task, after, min(event_log.SLICE, through - after))
        if not events:
            break
        found += events
    return [event for event in found if event.number <= through]


def _make_initial_task(task: Task) -> values.Task:
    """The task before its first event."""
    at = task.created_at.replace(microsecond=task.created_at.microsecond // 1000 * 1000)
    return values.Task(
        id=task.public_id,
        context_id=task.context.public_id,
        status=status_of(TaskState.SUBMITTED, at, ""),
        metadata=Raw(task.metadata.encode()) if task.metadata else None,
    )


def forget_idempotency(before: datetime.datetime, limit: int) -> int:
    """Forget keys that came before a moment, the oldest first and at most `limit`. Returns how many."""
    oldest = unheld(Idempotency.objects.filter(created_at__lt=before), "task__")
    oldest = oldest.order_by("created_at")
    gone, _ = Idempotency.objects.filter(
        pk__in=list(oldest.values_list("pk", flat=True)[:limit])
    ).delete()
    return gone
