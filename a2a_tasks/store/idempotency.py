"""Idempotency keys: stored in the transaction that accepts a request, and looked up when the request is repeated.

The unique name of a key is the whole guarantee: if two requests are accepted at once, the second waits for the first,
and then its transaction is rolled back.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import Idempotency, Run, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import IdempotencyConflict, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL, LogEvent, fold
from a2a_tasks.protocol.values import Raw, TaskState
from a2a_tasks.store import event_log
from a2a_tasks.store.hooks import Companion
from a2a_tasks.store.legal_holds import exclude_held
from a2a_tasks.store.records import Accepted, status_of
from a2a_tasks.store.scoping import reaches
from a2a_tasks.store.tasks import find_by_key

__all__ = [
    "IdempotencyKey",
    "KeyTaken",
    "PreviousSend",
    "find_at",
    "forget_idempotency",
    "list_uses",
    "recall",
    "remember",
]


class KeyTaken(Exception):
    """Another request was accepted under this key at the same moment; nothing was written."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The name by which a repeated request is recognised, and the fingerprint that it must have."""

    scope: OwnerScope
    name: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviousSend:
    """An earlier request with the key: the result of that time, and the present state of its task."""

    accepted: Accepted
    #: True if it is certain that its client gets a task.
    is_task: bool
    last_event: int
    #: True if its task has ended, and retention has removed the beginning of its log.
    over: bool = False


def remember(key: IdempotencyKey) -> Companion:
    """Return a function that stores the key with the task, in the accepting transaction. It raises KeyTaken."""
    return functools.partial(_remember, key)


def _remember(key: IdempotencyKey, task: int) -> None:
    newest = Run.objects.filter(task_id=task).order_by("-pk")  # the task is locked: this run is new
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
    """Return the send that was accepted under this key; None if there was none, or it has expired.

    Raises IdempotencyConflict if it was another request, TaskNotFound if its task is not in the scope: the key stays
    taken, so that no other task can begin under it.
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


def list_uses(scope: OwnerScope, names: Sequence[str]) -> dict[str, tuple[TaskState, float]]:
    """Return the state of the task, and the seconds since it was accepted, by each of these names that is taken."""
    taken = Idempotency.objects.filter(
        tenant=scope.tenant, owner=scope.owner, agent=scope.agent, name__in=names
    )
    rows = taken.annotate(now=Now()).values_list("name", "task__state", "created_at", "now")
    return {name: (TaskState(state), (now - at).total_seconds()) for name, state, at, now in rows}


def _scope(key: IdempotencyKey) -> dict[str, str]:
    return {"tenant": key.scope.tenant, "owner": key.scope.owner, "agent": key.scope.agent}


def _rows(key: IdempotencyKey) -> QuerySet[Idempotency]:
    oldest = Now() - datetime.timedelta(hours=float(conf.IDEMPOTENCY_HOURS))
    expired = ExpressionWrapper(Q(created_at__lte=oldest), output_field=BooleanField())
    found = Idempotency.objects.filter(**_scope(key), name=key.name)
    return found.select_related("task__context").annotate(expired=expired)


def _make_previous(row: Idempotency, task: Task) -> PreviousSend:
    events = _events(task.pk, row.number)
    found = None if len(events) == row.number else find_by_key(task.pk)
    accepted = Accepted(
        task=task.pk,
        number=found.last_event if found else row.number,
        run=row.run,
        view=found.view if found else fold(_make_initial_task(task), events),
    )
    return PreviousSend(
        accepted=accepted,
        is_task=task.is_task,
        last_event=task.last_event,
        over=found is not None and found.state in TERMINAL,
    )


def find_at(task: int, number: int) -> values.Task | None:
    """Return a task as it was after an event; as it is, if retention has removed some; None if it is gone."""
    found = find_by_key(task)
    if found is None:
        return None
    events = _events(task, number) if found.last_event != number else []
    if len(events) != number:
        return found.view
    row = Task.objects.select_related("context").get(pk=task)
    return fold(_make_initial_task(row), events)


def _events(task: int, through: int) -> list[LogEvent]:
    """Return the events of a task up to a number; fewer if retention has removed some."""
    found: list[LogEvent] = []
    while not found or found[-1].number < through:
        after = found[-1].number if found else 0
        events = event_log.read_after(task, after, min(event_log.SLICE, through - after))
        if not events:
            break
        found += events
    return [event for event in found if event.number <= through]


def _make_initial_task(task: Task) -> values.Task:
    """Return the value of the task before its first event."""
    at = task.created_at.replace(microsecond=task.created_at.microsecond // 1000 * 1000)
    return values.Task(
        id=task.public_id,
        context_id=task.context.public_id,
        status=status_of(TaskState.SUBMITTED, at, ""),
        metadata=Raw(task.metadata.encode()) if task.metadata else None,
    )


def forget_idempotency(before: datetime.datetime, limit: int) -> int:
    """Delete keys from before a time, oldest first, at most `limit`. Returns their number."""
    oldest = exclude_held(Idempotency.objects.filter(created_at__lt=before), "task__")
    oldest = oldest.order_by("created_at")
    gone, _ = Idempotency.objects.filter(
        pk__in=list(oldest.values_list("pk", flat=True)[:limit])
    ).delete()
    return gone
