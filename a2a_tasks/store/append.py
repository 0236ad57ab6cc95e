"""Appending what runs say: the events, the task rows they fold into, artifacts and the runs' ends, in one go.

The statement's one gate is the task row: it must still carry the run's token. A task that ended, was cancelled or
rescued carries it no longer, so nothing is written for it and its run is told so (law 4). The row also counts the batches
that the run has written. A batch that is repeated after an unknown outcome is recognised by this number and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Now

from a2a_tasks import wakeups
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Artifact, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.protocol.lifecycle import EventKind, Recorded
from a2a_tasks.protocol.values import Role
from a2a_tasks.store.folding import fold_behind
from a2a_tasks.store.group import Group, one_by_one
from a2a_tasks.store.hop import AWAY, outcome
from a2a_tasks.store.records import Batch, Fenced, RunEnd
from a2a_tasks.store.sql import fetch

__all__ = ["append", "append_many", "appending"]

# Runs are locked in the order of their ids, as the heartbeat locks them: two orders would be a deadlock.
APPEND = """
with batch as (
  select * from unnest(%(n)s::int[], %(task)s::bigint[], %(run)s::bigint[], %(token)s::text[], %(count)s::int[],
    %(state)s::text[], %(at)s::timestamptz[], %(status_message)s::text[], %(memory)s::text[], %(reveal)s::bool[],
    %(end)s::text[], %(error)s::text[], %(ends_task)s::bool[], %(after)s::int[])
  as b(n, task, run, token, count, state, at, status_message, memory, reveal, ended, error, ends_task, after)
), held as (
  update a2a_tasks_task t set last_event = t.last_event + b.count, batches = t.batches + 1,
    state = coalesce(b.state, t.state), status_at = coalesce(b.at, t.status_at),
    status_message = coalesce(b.status_message, t.status_message),
    memory = coalesce(b.memory, t.memory), is_task = t.is_task or b.reveal,
    run_token = case when b.ended is null then t.run_token else '' end
  from batch b where t.id = b.task and t.run_token = b.token and b.token <> '' and t.batches = coalesce(b.after, t.batches)
  returning b.n, b.run, b.ended, b.error, b.ends_task, t.id, t.last_event, t.last_event - b.count as base
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, run, body)
  select h.id, h.base + e.i, e.kind, e.state, h.run, e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(states)s::text[],
    %(bodies)s::text[]) as e(n, i, kind, state, body) join held h on h.n = e.n
), message as (
  insert into a2a_tasks_message (task_id, number, role, body)
  select h.id, h.base + e.i, 'ROLE_AGENT', e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(bodies)s::text[])
    as e(n, i, kind, body) join held h on h.n = e.n
  where e.kind = 4
), artifact as (
  insert into a2a_tasks_artifact (task_id, position, artifact_id, first_event, body)
  select h.id, a.position, a.artifact_id, h.base + 1 + a.start, a.body
  from unnest(%(artifact_n)s::int[], %(positions)s::int[], %(artifact_ids)s::text[], %(starts)s::int[],
    %(artifacts)s::text[]) as a(n, position, artifact_id, start, body) join held h on h.n = a.n
  on conflict (task_id, position) do update set first_event = excluded.first_event, body = excluded.body
), ending as (
  select r.id, h.ended, h.error from a2a_tasks_run r join held h on r.id = h.run
  where h.ended is not null order by r.id for update of r
), run as (
  update a2a_tasks_run r set status = e.ended, error = r.error || e.error, token = '', lease_until = null,
    ended_at = clock_timestamp()
  from ending e where r.id = e.id
), dropped as (
  update a2a_tasks_run r set status = 'dropped', ended_at = clock_timestamp()
  from held h where r.task_id = h.id and h.ends_task and r.status = 'queued'
)
select h.n, h.last_event from held h
"""


def append(batch: Batch) -> int:
    """Write the batch and announce it. Returns the number of its last event. Raises Fenced, having written nothing."""
    (result,) = append_many([batch])
    if isinstance(result, Exception):
        raise result
    return result


def append_many(batches: Sequence[Batch]) -> list[int | Exception]:
    """The same for the batches of many runs at once: each gets its last number, or Fenced."""
    failpoint("worker.append_begins")
    try:
        written = _write(batches)
    except AWAY:
        raise  # the database is away: that concerns everybody
    except Exception as fault:  # noqa: BLE001 - one cannot be written; the others can
        if len(batches) == 1:
            return [fault]
        return one_by_one(append_many, batches)
    failpoint("worker.ended" if any(batch.end for batch in batches) else "worker.appended")
    told = [_told(batch, done) for batch, done in zip(batches, written, strict=True)]
    failpoint("worker.announced")
    return told


#: `await appending(batch)`: append, together with whatever else is being appended.
appending = Group(append_many, run=outcome, size=lambda batch: batch.size, again=Batch.come_again)


def _announced(batch: Batch, last: int | None) -> int | Exception:
    if last is None:
        return Fenced()
    wakeups.announce(wakeups.Committed(batch.task, last, batch.recorded(last)))
    if batch.closed:
        fold_behind(batch.task, last, batch.closed)
    if batch.end and not batch.ends_task:
        _call_next(batch.task)
    return last


def _call_next(task: int) -> None:
    """Announce a run that waited for this one to end: a message came meanwhile.

    Asked after the commit. The statement that ends a run waits for a message that is being written, and does not see it.
    """
    waiting = Run.objects.filter(task=task, status=RunStatus.QUEUED).order_by("pk")
    for queue in waiting.values_list("queue", flat=True)[:1]:
        wakeups.announce(wakeups.Due(queue))


def _told(batch: Batch, last: int | None) -> int | Exception:
    """Announce one batch of a group. A failure here is this batch's alone: the others are written."""
    try:
        return _announced(batch, last or _written_before(batch))
    except AWAY:
        return Overloaded.away(undone=False)


def _written_before(batch: Batch) -> int | None:
    """Return the number that the first try of a repeated batch wrote, or None if it wrote nothing."""
    if not batch.again or batch.after is None:
        return None
    mine = Run.objects.filter(pk=batch.run, token=batch.token, task__batches=batch.after + 1)
    if batch.end:
        mine = Run.objects.filter(pk=batch.run, status=batch.end.status)
    newest = Event.objects.filter(task_id=batch.task, run=batch.run).order_by("-number").first()
    if newest is None or not batch.events or not mine.exists():
        return None
    if (newest.body or batch.events[-1].body) != batch.events[-1].body:
        return None  # another attempt's
    return newest.number


def _columns(batches: Sequence[Batch]) -> dict[str, list[Any]]:
    statuses = [batch.status or (None, None, None) for batch in batches]
    events = [(n, i, e) for n, b in enumerate(batches) for i, e in enumerate(b.events, 1)]
    artifacts = [(n, row) for n, batch in enumerate(batches) for row in batch.artifacts]
    return {
        "n": list(range(len(batches))),
        "task": [batch.task for batch in batches],
        "run": [batch.run for batch in batches],
        "token": [batch.token for batch in batches],
        "count": [len(batch.events) for batch in batches],
        "state": [state.value if state else None for state, _, _ in statuses],
        "at": [at for _, at, _ in statuses],
        "status_message": [message for _, _, message in statuses],
        "memory": [batch.memory for batch in batches],
        "reveal": [batch.reveal for batch in batches],
        "end": [batch.end.status if batch.end else None for batch in batches],
        "error": [batch.end.error if batch.end else "" for batch in batches],
        "ends_task": [batch.ends_task for batch in batches],
        "after": [batch.after for batch in batches],
        "event_n": [n for n, _, _ in events],
        "event_i": [i for _, i, _ in events],
        "kinds": [int(event.kind) for _, _, event in events],
        "states": [event.state.value if event.state else "" for _, _, event in events],
        "bodies": [event.body for _, _, event in events],
        "artifact_n": [n for n, _ in artifacts],
        "positions": [row.position for _, row in artifacts],
        "artifact_ids": [row.artifact_id for _, row in artifacts],
        "starts": [row.offset for _, row in artifacts],
        "artifacts": [row.body for _, row in artifacts],
    }


def _write_postgres(batches: Sequence[Batch]) -> list[int | None]:
    point = "worker.ending" if any(batch.end for batch in batches) else "worker.appending"
    size = sum(batch.size for batch in batches)
    written = dict(fetch(APPEND, _columns(batches), point=point, size=size))
    return [written.get(n) for n in range(len(batches))]


def _write(batches: Sequence[Batch]) -> list[int | None]:
    simple = not any(batch.reopened for batch in batches)
    if connection.vendor == "postgresql" and simple:
        return _write_postgres(batches)
    return _write_in_steps(batches)


@transaction.atomic
def _write_in_steps(batches: Sequence[Batch]) -> list[int | None]:
    """With artifacts that grow again, or on SQLite: the same, as one transaction of several statements."""
    if connection.vendor == "postgresql":
        written = _write_postgres(batches)
    else:
        written = [_write_portable(batch) for batch in batches]
    for batch, done in zip(batches, written, strict=True):
        if done:
            Artifact.objects.filter(task_id=batch.task, position__in=batch.reopened).update(body="")
    return written


def _changes(batch: Batch) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "last_event": F("last_event") + len(batch.events),
        "batches": F("batches") + 1,
    }
    if batch.status:
        changes["state"], changes["status_at"], changes["status_message"] = batch.status
    if batch.memory is not None:
        changes["memory"] = batch.memory
    if batch.reveal:
        changes["is_task"] = True
    if batch.end:
        changes["run_token"] = ""
    return changes


def _write_portable(batch: Batch) -> int | None:
    held = Task.objects.filter(pk=batch.task, run_token=batch.token).exclude(run_token="")
    if batch.after is not None:
        held = held.filter(batches=batch.after)
    if not held.update(**_changes(batch)):
        return None
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
        _end_portable(batch, batch.end)
    return last


def _end_portable(batch: Batch, end: RunEnd) -> None:
    Run.objects.filter(pk=batch.run).update(
        status=end.status,
        error=Concat(F("error"), Value(end.error)),  # how earlier attempts died stays
        token="",
        lease_until=None,
        ended_at=Now(),
    )
    if batch.ends_task:
        queued = Run.objects.filter(task_id=batch.task, status=RunStatus.QUEUED)
        queued.update(status=RunStatus.DROPPED, ended_at=Now())


def _event_row(task: int, event: Recorded) -> Event:
    return Event(
        task_id=task,
        number=event.number,
        kind=event.kind,
        state=event.state or "",
        run=event.run,
        body=event.body,
    )
