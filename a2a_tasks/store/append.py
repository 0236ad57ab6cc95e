"""Appending what a run says: the events, the task row they fold into, artifacts and the run's end, in one go.

The statement's one gate is the task row: it must still carry the run's token. A task that ended, was cancelled or
rescued carries it no longer, so nothing is written and the run is told so (law 4).
"""

from __future__ import annotations

from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from a2a_tasks import wakeups
from a2a_tasks.models import Artifact, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind, Recorded, assemble
from a2a_tasks.protocol.values import Role
from a2a_tasks.store.records import Batch, Fenced
from a2a_tasks.store.sql import fetch_one

__all__ = ["append", "fold_artifact"]

APPEND = """
with held as (
  update a2a_tasks_task set last_event = last_event + %(count)s,
    state = coalesce(%(state)s, state), status_at = coalesce(%(at)s, status_at),
    status_message = coalesce(%(status_message)s, status_message),
    memory = coalesce(%(memory)s, memory), is_task = is_task or %(reveal)s,
    run_token = case when %(end)s::text is null then run_token else '' end
  where id = %(task)s and run_token = %(token)s
  returning id, last_event
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, run, body)
  select held.id, held.last_event - %(count)s + e.i, e.kind, e.state, %(run)s, e.body
  from held, unnest(%(kinds)s::smallint[], %(states)s::text[], %(bodies)s::text[])
    with ordinality as e(kind, state, body, i)
), artifact as (
  insert into a2a_tasks_artifact (task_id, position, artifact_id, first_event, body)
  select held.id, a.position, a.artifact_id, held.last_event - %(count)s + 1 + a.start, a.body
  from held, unnest(%(positions)s::int[], %(artifact_ids)s::text[], %(starts)s::int[],
    %(artifacts)s::text[]) as a(position, artifact_id, start, body)
  on conflict (task_id, position) do update set first_event = excluded.first_event, body = excluded.body
), message as (
  insert into a2a_tasks_message (task_id, number, role, body)
  select held.id, held.last_event - %(count)s + e.i, %(role)s, e.body
  from held, unnest(%(kinds)s::smallint[], %(bodies)s::text[]) with ordinality as e(kind, body, i)
  where e.kind = %(message_kind)s
), run as (
  update a2a_tasks_run set status = %(end)s, error = %(error)s, token = '', lease_until = null,
    ended_at = clock_timestamp()
  where id = %(run)s and %(end)s::text is not null and exists (select from held)
), dropped as (
  update a2a_tasks_run set status = 'dropped', ended_at = clock_timestamp()
  where task_id = %(task)s and status = 'queued' and %(ends_task)s and exists (select from held)
)
select last_event, case when %(end)s::text is null or %(ends_task)s then null
  else (select min(queue) from a2a_tasks_run where task_id = %(task)s and status = 'queued') end
from held
"""


def append(batch: Batch) -> int:
    """Write the batch and announce it. Returns the number of its last event. Raises Fenced, having written nothing."""
    if connection.vendor == "postgresql" and not batch.closed:
        last, waiting = _append_postgres(batch)
    else:
        last, waiting = _append_in_steps(batch)
    wakeups.announce(wakeups.Committed(batch.task, last, batch.recorded(last)))
    if waiting is not None:  # a message came while this run was at work: its turn has come
        wakeups.announce(wakeups.Due(waiting))
    return last


def _values(batch: Batch) -> dict[str, Any]:
    state, at, status_message = batch.status or (None, None, None)
    return {
        "task": batch.task,
        "run": batch.run,
        "token": batch.token,
        "count": len(batch.events),
        "state": state.value if state else None,
        "at": at,
        "status_message": status_message,
        "memory": batch.memory,
        "reveal": batch.reveal,
        "end": batch.end.status if batch.end else None,
        "ends_task": batch.ends_task,
        "error": batch.end.error if batch.end else "",
        "kinds": [int(event.kind) for event in batch.events],
        "states": [event.state.value if event.state else "" for event in batch.events],
        "bodies": [event.body for event in batch.events],
        "positions": [row.position for row in batch.artifacts],
        "artifact_ids": [row.artifact_id for row in batch.artifacts],
        "starts": [row.offset for row in batch.artifacts],
        "artifacts": [row.body for row in batch.artifacts],
        "role": Role.AGENT.value,
        "message_kind": int(EventKind.MESSAGE),
    }


def _append_postgres(batch: Batch) -> tuple[int, str | None]:
    """The number of the last event, and the queue of a run that was waiting for this one to end."""
    row = fetch_one(APPEND, _values(batch))
    if row is None:
        raise Fenced
    return row[0], row[1]


@transaction.atomic
def _append_in_steps(batch: Batch) -> tuple[int, str | None]:
    """With artifacts to fold, or on SQLite: the same, as one transaction of several statements."""
    write = _append_postgres if connection.vendor == "postgresql" else _append_portable
    last, waiting = write(batch)
    for position in batch.closed:
        fold_artifact(batch.task, position)
    return last, waiting


def _changes(batch: Batch) -> dict[str, Any]:
    changes: dict[str, Any] = {"last_event": F("last_event") + len(batch.events)}
    if batch.status:
        changes["state"], changes["status_at"], changes["status_message"] = batch.status
    if batch.memory is not None:
        changes["memory"] = batch.memory
    if batch.reveal:
        changes["is_task"] = True
    if batch.end:
        changes["run_token"] = ""
    return changes


def _append_portable(batch: Batch) -> tuple[int, str | None]:
    held = Task.objects.filter(pk=batch.task, run_token=batch.token)
    if not held.update(**_changes(batch)):
        raise Fenced
    last = Task.objects.values_list("last_event", flat=True).get(pk=batch.task)
    recorded = batch.recorded(last)
    Event.objects.bulk_create(_event_row(batch.task, event) for event in recorded)
    Message.objects.bulk_create(
        Message(task_id=batch.task, number=event.number, role=Role.AGENT, body=event.body)
        for event in recorded
        if event.kind is EventKind.MESSAGE
    )
    for row in batch.artifacts:
        Artifact.objects.update_or_create(
            task_id=batch.task,
            position=row.position,
            defaults={
                "artifact_id": row.artifact_id,
                "first_event": recorded[0].number + row.offset,
                "body": row.body,
            },
        )
    if batch.end:
        Run.objects.filter(pk=batch.run).update(
            status=batch.end.status,
            error=batch.end.error,
            token="",
            lease_until=None,
            ended_at=Now(),
        )
    queued = Run.objects.filter(task_id=batch.task, status=RunStatus.QUEUED)
    if batch.ends_task:
        queued.update(status=RunStatus.DROPPED, ended_at=Now())
    waiting = queued.values_list("queue", flat=True).first() if batch.end else None
    return last, waiting


def _event_row(task: int, event: Recorded) -> Event:
    return Event(
        task_id=task,
        number=event.number,
        kind=event.kind,
        state=event.state or "",
        run=event.run,
        body=event.body,
    )


def fold_artifact(task: int, position: int) -> None:
    """Put a grown artifact together from its events, once: it is closed, or its task has ended."""
    artifact = Artifact.objects.get(task_id=task, position=position)
    whole = growing(task, {artifact.artifact_id: artifact.first_event})[artifact.artifact_id]
    Artifact.objects.filter(task_id=task, position=position).update(body=whole.decode())


def growing(task: int, first_events: dict[str, int]) -> dict[str, bytes]:
    """Artifacts that are not folded yet, as JSON by id: assembled from the events since each began."""
    bodies = Event.objects.filter(
        task_id=task, kind=EventKind.ARTIFACT, number__gte=min(first_events.values())
    ).order_by("number")
    found = assemble(bodies.values_list("body", flat=True))
    return {key: found[key] for key in first_events}
