"""Accepting messages that begin tasks: context, task, message, event 1 and run of each, in one statement for all."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from a2a_tasks import wakeups
from a2a_tasks.audit import Action
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Context, Event, Message, Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, rounds
from a2a_tasks.store.group import Group, one_by_one
from a2a_tasks.store.hop import AWAY
from a2a_tasks.store.records import Accepted, Assignment, NewTask, TaskExists, new_view
from a2a_tasks.store.sql import fetch

__all__ = ["accept", "accept_many", "accepting", "begin"]

ACCEPT = """
with input as (
  select * from unnest(%(n)s::int[], %(tenant)s::text[], %(owner)s::text[], %(maker)s::text[], %(agent)s::text[],
    %(id)s::text[], %(context_id)s::text[], %(is_task)s::bool[], %(at)s::timestamptz[], %(metadata)s::text[],
    %(dialect)s::text[], %(role)s::text[], %(message)s::text[], %(queue)s::text[], %(share)s::text[],
    %(request)s::text[], %(token)s::text[], %(worker)s::text[], %(lease)s::float8[], %(request_id)s::text[],
    %(actor)s::text[], %(binding)s::text[], %(opening)s::text[])
  as i(n, tenant, owner, maker, agent, id, context_id, is_task, at, metadata, dialect, role, message, queue, share, request,
    token, worker, lease, request_id, actor, binding,
    opening)
), context as (
  insert into a2a_tasks_context (tenant, owner, agent, public_id)
  select distinct tenant, owner, agent, context_id from input order by context_id, agent, owner, tenant
  on conflict (public_id, agent, owner, tenant) do update set updated_at = statement_timestamp()
  returning id, tenant, owner, agent, public_id
), task as (
  insert into a2a_tasks_task (public_id, tenant, owner, maker, agent, context_id, is_task, state, status_at,
    status_message, metadata, memory, last_event, run_token, origin_dialect, origin_binding)
  select i.id, i.tenant, i.owner, i.maker, i.agent, c.id, i.is_task, 'TASK_STATE_SUBMITTED', i.at, '', i.metadata, '', 1,
    i.token, i.dialect, i.binding
  from input i join context c
    on (c.public_id, c.agent, c.owner, c.tenant) = (i.context_id, i.agent, i.owner, i.tenant)
  order by i.n
  returning id, public_id, tenant, owner, agent
), keyed as (
  select i.*, t.id as key from input i join task t
    on (t.public_id, t.agent, t.owner, t.tenant) = (i.id, i.agent, i.owner, i.tenant)
), message as (
  insert into a2a_tasks_message (task_id, number, role, body, opening)
  select key, 1, role, message, opening from keyed
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, body) select key, 1, 1, '', '' from keyed
), joining as (
  select j.queue, j.share, 1 + greatest(
    coalesce((select r.round from a2a_tasks_run r where r.status = 'queued' and r.queue = j.queue
      and not exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
        and e.status in ('queued', 'running'))
      order by r.round, r.id limit 1), 0),
    coalesce((select max(r.round) from a2a_tasks_run r
      where r.status = 'queued' and r.queue = j.queue and r.share = j.share), 0)) as round
  from (select distinct queue, share from input where token = '') j
), audit as (
  insert into a2a_tasks_auditentry (tenant, agent, actor, action, object, outcome, detail, request)
  select tenant, agent, actor, 'task.send', id, 'done', '', request_id from keyed
), run as (
  insert into a2a_tasks_run (task_id, input_number, queue, share, round, status, attempt, token, worker,
    lease_seconds, lease_until, started_at, request, error)
  select key, 1, k.queue, k.share,
    coalesce(j.round - 1 + row_number() over (partition by j.queue, j.share order by n), 0),
    case when token = '' then 'queued' else 'running' end,
    case when token = '' then 0 else 1 end, token, worker, lease,
    case when token <> '' then clock_timestamp() + make_interval(secs => lease) end,
    case when token <> '' then clock_timestamp() end, request, ''
  from keyed k left join joining j on k.token = '' and (j.queue, j.share) = (k.queue, k.share)
  returning task_id, id
)
select k.n, k.key, r.id from keyed k join run r on r.task_id = k.key order by k.n
"""


def accept(new: NewTask) -> Accepted:
    """Write a new task with its first message and run; with a hold, the run is this process's already.

    Raises TaskExists if the owner already has a task of that id.
    """
    (result,) = accept_many([new])
    if isinstance(result, Exception):
        raise result
    return result


def accept_many(news: Sequence[NewTask]) -> list[Accepted | Exception]:
    """The same for many at once; one that cannot be written does not hinder the others."""
    failpoint("accept.before")
    try:
        results = [_accepted(new, *keys) for new, keys in zip(news, _insert(news), strict=True)]
    except AWAY:
        raise  # the database is away: that concerns everybody
    except Exception as fault:  # noqa: BLE001 - one cannot be written; the others can
        if len(news) == 1:
            return [TaskExists(str(fault)) if isinstance(fault, IntegrityError) else fault]
        return one_by_one(accept_many, news)
    failpoint("accept.committed")
    for queue in {new.queue for new in news if new.hold is None}:
        wakeups.announce(wakeups.Due(queue))
    failpoint("accept.announced")
    return list(results)


#: `await accepting(new)`: accept, together with whatever else is being accepted.
accepting = Group(accept_many, size=lambda new: len(new.message) + len(new.request))


def begin(new: NewTask) -> Accepted:
    """Write a new task as part of a transaction that is open already; nothing is announced."""
    ((task, run),) = _insert([new])
    return _accepted(new, task, run)


def _columns(news: Sequence[NewTask]) -> dict[str, list[Any]]:
    holds = [new.hold for new in news]
    return {
        "n": list(range(len(news))),
        "tenant": [new.scope.tenant for new in news],
        "owner": [new.scope.owner for new in news],
        "maker": [new.maker for new in news],
        "agent": [new.scope.agent for new in news],
        "context_id": [new.context_id for new in news],
        "id": [new.id for new in news],
        "is_task": [new.is_task for new in news],
        "at": [new.at for new in news],
        "metadata": [new.metadata for new in news],
        "dialect": [new.dialect for new in news],
        "role": [new.role for new in news],
        "message": [new.message for new in news],
        "queue": [new.queue for new in news],
        "share": [new.share for new in news],
        "request": [new.request for new in news],
        "token": [hold.token if hold else "" for hold in holds],
        "worker": [hold.worker if hold else "" for hold in holds],
        "lease": [hold.lease_seconds if hold else 0.0 for hold in holds],
        "request_id": [new.request_id for new in news],
        "binding": [new.binding for new in news],
        "opening": [new.opening for new in news],
        "actor": [new.actor for new in news],
    }


def _insert(news: Sequence[NewTask]) -> list[tuple[int, int]]:
    insert = _insert_postgres if connection.vendor == "postgresql" else _insert_portable
    if not any(new.companions for new in news):
        return insert(news)
    with transaction.atomic():
        keys = insert(news)
        pairs = zip(news, keys, strict=True)
        for new, (task, _) in sorted(pairs, key=lambda pair: pair[0].lock):
            new.accompany(task)
        failpoint("accept.accompanied")
    return keys


def _insert_postgres(news: Sequence[NewTask]) -> list[tuple[int, int]]:
    return [(task, run) for _, task, run in fetch(ACCEPT, _columns(news), point="accept.inserted")]


@transaction.atomic
def _insert_portable(news: Sequence[NewTask]) -> list[tuple[int, int]]:
    return [_insert_one(new) for new in news]


def _insert_one(new: NewTask) -> tuple[int, int]:
    scope: dict[str, Any] = {
        "tenant": new.scope.tenant,
        "owner": new.scope.owner,
        "agent": new.scope.agent,
    }
    context, made = Context.objects.get_or_create(public_id=new.context_id, **scope)
    if not made:
        Context.objects.filter(pk=context.pk).update(updated_at=Now())
    task = Task.objects.create(
        public_id=new.id,
        context=context,
        maker=new.maker,
        is_task=new.is_task,
        state=TaskState.SUBMITTED,
        status_at=new.at,
        metadata=new.metadata,
        last_event=1,
        run_token=new.hold.token if new.hold else "",
        origin_dialect=new.dialect,
        origin_binding=new.binding,
        **scope,
    )
    Message.objects.create(
        task=task, number=1, role=new.role, body=new.message, opening=new.opening
    )
    Event.objects.create(task=task, number=1, kind=EventKind.INPUT)
    audit.note(Action.TASK_SEND, new.id, scope=new.scope, actor=new.actor, request=new.request_id)
    return task.pk, create_run(task.pk, 1, new).pk


def create_run(task: int, number: int, new: NewTask) -> Run:
    """The row of a run that answers event `number`, queued or held."""
    hold = new.hold
    held: dict[str, Any]
    if hold is None:
        held = {"status": RunStatus.QUEUED, "round": rounds.joined(new.queue, new.share)}
    else:
        held = {
            "status": RunStatus.RUNNING,
            "attempt": 1,
            "token": hold.token,
            "worker": hold.worker,
            "lease_seconds": hold.lease_seconds,
            "lease_until": Now() + datetime.timedelta(seconds=hold.lease_seconds),
            "started_at": Now(),
        }
    return Run.objects.create(
        task_id=task,
        input_number=number,
        queue=new.queue,
        share=new.share,
        request=new.request,
        **held,
    )


def _accepted(new: NewTask, task: int, run: int) -> Accepted:
    return Accepted(
        task=task, number=1, run=run, view=new_view(new), assignment=_assignment(new, task, run)
    )


def _assignment(new: NewTask, task: int, run: int) -> Assignment | None:
    if new.hold is None:
        return None
    return Assignment(
        run=run,
        token=new.hold.token,
        asked=new.hold.asked,
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
        share=new.share,
    )
