"""Runs in the table: claim, heartbeat, hand back, rescue. All time is the database's (law 4)."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, Value
from django.db.models.functions import Concat, Now

from a2a_tasks import wakeups
from a2a_tasks.caller import Scope
from a2a_tasks.conf import conf
from a2a_tasks.models import Message, Run, RunStatus, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log
from a2a_tasks.store.records import Assignment
from a2a_tasks.store.sql import fetch
from a2a_tasks.store.tasks import open_artifacts

__all__ = ["claim", "deaths", "hand_back", "heartbeat", "new_token", "note", "rescue"]

#: Runs taken or rescued in one transaction.
BATCH = 100

# Task and run are locked together or not at all: whoever cancels holds the task and waits for its runs, so a
# claim must not wait for a task while it holds a run. The token is made per row, for this one acquisition.
CLAIM = """
with due as (
  select r.id, r.task_id, gen_random_uuid()::text as token, t.state = any(%(ended)s) as ended
  from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'queued' and r.queue = any(%(queues)s) and r.due_at <= clock_timestamp()
    and (t.agent = any(%(agents)s) or r.due_at < clock_timestamp() - make_interval(secs => %(orphan)s))
    and not exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
  order by r.id limit %(limit)s
  for update of r, t skip locked
), task as (
  update a2a_tasks_task t set run_token = d.token from due d where t.id = d.task_id and not d.ended
  returning t.*
), run as (
  update a2a_tasks_run r set status = case when d.ended then 'dropped' else 'running' end,
    attempt = r.attempt + case when d.ended then 0 else 1 end,
    token = case when d.ended then '' else d.token end, worker = %(worker)s, lease_seconds = %(lease)s,
    lease_until = case when d.ended then null else clock_timestamp() + make_interval(secs => %(lease)s) end,
    started_at = case when d.ended then null else clock_timestamp() end,
    ended_at = case when d.ended then clock_timestamp() end
  from due d where r.id = d.id
  returning r.id, r.task_id, r.token, r.attempt, r.input_number, r.request
)
select r.id, r.token, r.attempt, t.id, t.tenant, t.owner, t.agent, t.public_id, c.public_id, t.state, t.is_task,
  t.last_event, r.input_number, m.body, r.request, t.memory,
  exists (select from a2a_tasks_artifact a where a.task_id = t.id)
from run r join task t on t.id = r.task_id join a2a_tasks_context c on c.id = t.context_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
order by r.id
"""

HEARTBEAT = """
with held as (
  select id from a2a_tasks_run where status = 'running' and token = any(%s::text[]) order by id for update
)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
from held where r.id = held.id returning token
"""


def new_token() -> str:
    """A token for one acquisition; never a worker's name, which would outlive it."""
    return secrets.token_urlsafe(18)


def _lease(seconds: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


def claim(
    queues: Sequence[str],
    agents: Sequence[str],
    *,
    worker: str,
    limit: int,
    lease_seconds: float,
) -> list[Assignment]:
    """Take up to `limit` due runs of these agents for this process, oldest first, one of a task at a time.

    Runs that nobody who hosts their agent took for A2A_ORPHAN_SECONDS are taken, too, to be failed.
    """
    take = _claim_postgres if connection.vendor == "postgresql" else _claim_portable
    return take(queues, agents, worker, min(limit, BATCH), lease_seconds)


def _claim_postgres(
    queues: Sequence[str], agents: Sequence[str], worker: str, limit: int, lease_seconds: float
) -> list[Assignment]:
    values = {
        "ended": sorted(TERMINAL),
        "queues": list(queues),
        "agents": list(agents),
        "orphan": float(conf.ORPHAN_SECONDS),
        "limit": limit,
        "worker": worker,
        "lease": lease_seconds,
    }
    return [_assignment(row) for row in fetch(CLAIM, values)]


def _assignment(row: tuple[Any, ...]) -> Assignment:
    """The assignment in a row of CLAIM."""
    run, token, attempt, task, tenant, owner, agent, task_id, context_id, state = row[:10]
    is_task, last_event, input_number, message, request, memory, has_artifacts = row[10:]
    return Assignment(
        run=run,
        token=token,
        attempt=attempt,
        task=task,
        scope=Scope(tenant, owner, agent),
        task_id=task_id,
        context_id=context_id,
        state=TaskState(state),
        is_task=is_task,
        last_event=last_event,
        input_number=input_number,
        input=message,
        request=request,
        memory=memory,
        artifacts=open_artifacts(task) if has_artifacts else (),
    )


@transaction.atomic
def _claim_portable(
    queues: Sequence[str], agents: Sequence[str], worker: str, limit: int, lease_seconds: float
) -> list[Assignment]:
    earlier = Run.objects.filter(
        task=OuterRef("task"),
        pk__lt=OuterRef("pk"),
        status__in=[RunStatus.QUEUED, RunStatus.RUNNING],
    )
    due = (
        Run.objects.filter(status=RunStatus.QUEUED, queue__in=queues, due_at__lte=Now())
        .filter(Q(task__agent__in=agents) | Q(due_at__lt=Now() - _lease(conf.ORPHAN_SECONDS)))
        .exclude(Exists(earlier))
        .order_by("pk")
    )
    taken = [_take(run, worker, lease_seconds) for run in due[:limit]]
    return [assignment for assignment in taken if assignment is not None]


def _take(run: Run, worker: str, lease_seconds: float) -> Assignment | None:
    """Hold the run, and the task for it; a task that has ended meanwhile needs no run."""
    token = new_token()
    open_ = Task.objects.filter(pk=run.task_id).exclude(state__in=TERMINAL)
    if not open_.update(run_token=token):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.DROPPED, ended_at=Now())
        return None
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        attempt=F("attempt") + 1,
        token=token,
        worker=worker,
        lease_seconds=lease_seconds,
        lease_until=Now() + _lease(lease_seconds),
        started_at=Now(),
    )
    task = Task.objects.select_related("context").get(pk=run.task_id)
    message = Message.objects.get(task_id=task.pk, number=run.input_number)
    about_task = (task.pk, task.tenant, task.owner, task.agent, task.public_id)
    context = (task.context.public_id, task.state, task.is_task, task.last_event)
    said = (run.input_number, message.body, run.request, task.memory, True)
    return _assignment((run.pk, token, run.attempt + 1, *about_task, *context, *said))


def heartbeat(tokens: Collection[str]) -> set[str]:
    """Extend the leases of these tokens, each by its own row's length; returns those that still hold."""
    if connection.vendor == "postgresql":
        return {token for (token,) in fetch(HEARTBEAT, [list(tokens)])}
    held = Run.objects.filter(status=RunStatus.RUNNING, token__in=tokens)
    for seconds in set(held.values_list("lease_seconds", flat=True)):
        held.filter(lease_seconds=seconds).update(lease_until=Now() + _lease(seconds))
    return set(held.values_list("token", flat=True))


def hand_back(tokens: Collection[str]) -> None:
    """Give runs back untried, because this process stops: somebody else starts them at once."""
    for queue in _hand_back(tokens):
        wakeups.announce(wakeups.Due(queue))


def _hand_back(tokens: Collection[str]) -> set[str]:
    held = Run.objects.filter(token__in=tokens, status=RunStatus.RUNNING)
    runs = list(held.values_list("task_id", "token", "queue"))
    for task, token, _ in runs:
        _hand_back_one(task, token)
    return {queue for _, _, queue in runs}


@transaction.atomic
def _hand_back_one(task: int, token: str) -> None:
    """One task a transaction: who locks several meets another who locks them the other way round."""
    if Task.objects.filter(pk=task, run_token=token).update(run_token=""):
        Run.objects.filter(token=token, status=RunStatus.RUNNING).update(
            status=RunStatus.QUEUED,
            token="",
            lease_until=None,
            attempt=F("attempt") - 1,
        )


def rescue(*, max_attempts: int) -> int:
    """Take runs whose lease has ended from their dead process; returns how many.

    They are queued again, or after `max_attempts` their task fails, visibly.
    """
    announcements = _rescue(max_attempts)
    for hint in announcements:
        wakeups.announce(hint)
    return len(announcements)


def _rescue(max_attempts: int) -> list[wakeups.Hint]:
    lost = Run.objects.filter(status=RunStatus.RUNNING, lease_until__lt=Now()).order_by("pk")
    hints: list[wakeups.Hint] = []
    for key, task in lost.values_list("pk", "task_id")[:BATCH]:
        hint = _rescue_one(key, task, max_attempts)
        if hint is not None:
            hints.append(hint)
    return hints


@transaction.atomic
def _rescue_one(key: int, task_key: int, max_attempts: int) -> wakeups.Hint | None:
    task = log.locked(pk=task_key)  # every writer of the run waits for this row
    lost = Run.objects.filter(pk=key, status=RunStatus.RUNNING, lease_until__lt=Now())
    if connection.vendor == "postgresql":
        lost = lost.select_for_update()  # its heartbeat waits now, or has been and is seen
    run = lost.first()
    if task is None or run is None:
        return None  # it beat again, or somebody was quicker
    task.run_token = ""
    if run.attempt >= max_attempts:
        return wakeups.Committed(task.pk, task.last_event + 1, [_give_up(task, run)])
    task.save(update_fields=["run_token"])
    Run.objects.filter(pk=key).update(
        status=RunStatus.QUEUED, token="", lease_until=None, due_at=Now(), error=_obituary(run)
    )
    return wakeups.Due(run.queue)


def _obituary(run: Run) -> str:
    """What is known of the attempts that died, with the last one: kept in the run's row until it ends."""
    ended = run.lease_until.isoformat(timespec="seconds") if run.lease_until else "never"
    return f"{run.error}Attempt {run.attempt} on {run.worker} died: its lease ended at {ended}.\n"


def deaths(run: int) -> str:
    """What is known of the attempts of a run that died, one a line."""
    return str(Run.objects.values_list("error", flat=True).get(pk=run))


def note(token: str, text: str) -> None:
    """Keep with the run held by this token why its attempt ends; a rescue will add when."""
    held = Run.objects.filter(status=RunStatus.RUNNING, token=token)
    held.update(error=Concat(F("error"), Value(f"{text.rstrip()}\n")))


def _give_up(task: Task, run: Run) -> Recorded:
    times = "once" if run.attempt == 1 else f"{run.attempt} times"
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED,
        token="",
        lease_until=None,
        ended_at=Now(),
        error=f"The process running the agent died {times}, and the task was given up.\n{_obituary(run)}",
    )
    said = write(
        {
            "messageId": secrets.token_hex(16),
            "taskId": task.public_id,
            "contextId": task.context.public_id,
            "role": "ROLE_AGENT",
            "parts": [{"text": f"The agent was interrupted {times} and was given up."}],
        }
    ).decode()
    return log.change_state(task, TaskState.FAILED, at=log.now(), message=said)
