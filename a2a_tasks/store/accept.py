"""Accepting a message that begins a task: context, task, message, event 1 and run, in one statement."""

from __future__ import annotations

import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from a2a_tasks import wakeups
from a2a_tasks.models import Context, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.records import Accepted, Assignment, NewTask, new_view
from a2a_tasks.store.sql import fetch_one

__all__ = ["accept"]

ACCEPT = """
with context as (
  insert into a2a_tasks_context (tenant, owner, agent, public_id)
  values (%(tenant)s, %(owner)s, %(agent)s, %(context_id)s)
  on conflict (public_id, agent, owner, tenant) do update set updated_at = statement_timestamp()
  returning id
), task as (
  insert into a2a_tasks_task (public_id, tenant, owner, agent, context_id, is_task, state, status_at,
    status_message, metadata, memory, last_event, run_token, origin_dialect)
  select %(id)s, %(tenant)s, %(owner)s, %(agent)s, context.id, %(is_task)s, %(state)s, %(at)s,
    '', %(metadata)s, '', 1, %(token)s, %(dialect)s
  from context
  returning id
), message as (
  insert into a2a_tasks_message (task_id, number, role, body)
  select id, 1, %(role)s, %(message)s from task
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, body)
  select id, 1, %(kind)s, '', '' from task
)
insert into a2a_tasks_run (task_id, input_number, queue, status, attempt, token, worker, lease_seconds,
  lease_until, started_at, request, error)
select id, 1, %(queue)s, %(status)s, %(attempt)s, %(token)s, %(worker)s, %(lease)s,
  case when %(attempt)s = 1 then clock_timestamp() + make_interval(secs => %(lease)s) end,
  case when %(attempt)s = 1 then clock_timestamp() end, %(request)s, ''
from task
returning task_id, id
"""


def accept(new: NewTask) -> Accepted:
    """Write a new task with its first message and run; with a hold, the run is this process's already.

    Raises django.db.IntegrityError if the owner already has a task of that id.
    """
    insert = _insert_postgres if connection.vendor == "postgresql" else _insert_portable
    task, run = insert(new)
    if new.hold is None:
        wakeups.announce(wakeups.Due(new.queue))
    return Accepted(
        task=task, number=1, run=run, view=new_view(new), assignment=_assignment(new, task, run)
    )


def _insert_postgres(new: NewTask) -> tuple[int, int]:
    hold = new.hold
    values: dict[str, Any] = {
        "tenant": new.scope.tenant,
        "owner": new.scope.owner,
        "agent": new.scope.agent,
        "context_id": new.context_id,
        "id": new.id,
        "is_task": new.is_task,
        "state": TaskState.SUBMITTED.value,
        "at": new.at,
        "metadata": new.metadata,
        "dialect": new.dialect,
        "role": new.role,
        "message": new.message,
        "kind": int(EventKind.INPUT),
        "queue": new.queue,
        "request": new.request,
        "status": RunStatus.RUNNING.value if hold else RunStatus.QUEUED.value,
        "attempt": 1 if hold else 0,
        "token": hold.token if hold else "",
        "worker": hold.worker if hold else "",
        "lease": hold.lease_seconds if hold else 0.0,
    }
    row = fetch_one(ACCEPT, values)
    assert row is not None  # noqa: S101 - the statement inserts or raises
    return row[0], row[1]


@transaction.atomic
def _insert_portable(new: NewTask) -> tuple[int, int]:
    scope = {"tenant": new.scope.tenant, "owner": new.scope.owner, "agent": new.scope.agent}
    context, made = Context.objects.get_or_create(public_id=new.context_id, **scope)
    if not made:
        Context.objects.filter(pk=context.pk).update(updated_at=Now())
    task = Task.objects.create(
        public_id=new.id,
        context=context,
        is_task=new.is_task,
        state=TaskState.SUBMITTED,
        status_at=new.at,
        metadata=new.metadata,
        last_event=1,
        run_token=new.hold.token if new.hold else "",
        origin_dialect=new.dialect,
        **scope,
    )
    Message.objects.create(task=task, number=1, role=new.role, body=new.message)
    Event.objects.create(task=task, number=1, kind=EventKind.INPUT)
    return task.pk, create_run(task.pk, 1, new).pk


def create_run(task: int, number: int, new: NewTask) -> Run:
    """The row of a run that answers event `number`, queued or held."""
    hold = new.hold
    held: dict[str, Any] = (
        {
            "status": RunStatus.RUNNING,
            "attempt": 1,
            "token": hold.token,
            "worker": hold.worker,
            "lease_seconds": hold.lease_seconds,
            "lease_until": Now() + datetime.timedelta(seconds=hold.lease_seconds),
            "started_at": Now(),
        }
        if hold
        else {"status": RunStatus.QUEUED}
    )
    return Run.objects.create(
        task_id=task, input_number=number, queue=new.queue, request=new.request, **held
    )


def _assignment(new: NewTask, task: int, run: int) -> Assignment | None:
    if new.hold is None:
        return None
    return Assignment(
        run=run,
        token=new.hold.token,
        attempt=1,
        task=task,
        scope=new.scope,
        task_id=new.id,
        context_id=new.context_id,
        state=TaskState.SUBMITTED,
        is_task=new.is_task,
        last_event=1,
        input_number=1,
        input=new.message,
        request=new.request,
        memory="",
    )
