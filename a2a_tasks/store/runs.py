"""Runs in the table: claim, heartbeat, hand back, rescue. All time is the database's (law 4)."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import random
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Concat, Now

from a2a_tasks import wakeups
from a2a_tasks.caller import Scope
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Message, Run, RunStatus, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log
from a2a_tasks.store.records import Assignment, Fenced
from a2a_tasks.store.rounds import behind_another, furthest
from a2a_tasks.store.sql import fetch
from a2a_tasks.store.tasks import open_artifacts

__all__ = [
    "claim",
    "hand_back",
    "heartbeat",
    "holding",
    "new_token",
    "note",
    "rescue",
    "surrender",
    "unfinished",
    "waiting",
]

#: Runs taken or rescued in one transaction.
BATCH = 100
#: No agent has a limit.
NO_LIMITS: Mapping[str, int] = {}
#: The first half of the advisory locks under which limited runs are counted; the second is the agent.
COUNTING = 0x0A2A
#: Seconds that nobody waits.
NEVER = 1e9

# Task and run are locked together or not at all: whoever cancels holds the task and waits for its runs, so a
# claim must not wait for a task while it holds a run. The token is made per row, for this one acquisition.
# One queue at a time: of several at once PostgreSQL sorts all that are due, or looks for them among all runs there ever were.
CLAIM = """
with due as (
  select r.id, r.task_id, gen_random_uuid()::text as token, t.state = any(%(ended)s) as ended
  from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'queued' and r.queue = %(queue)s and r.due_at <= clock_timestamp()
    and r.round <= %(furthest)s and r.share <> all(%(full)s)
    and (t.agent = any(%(agents)s) or r.due_at < clock_timestamp() - make_interval(secs => %(orphan)s))
    and not exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
  order by r.round, r.id limit %(limit)s
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
  returning r.id, r.task_id, r.token, r.attempt, r.input_number, r.request, r.share, r.round
)
select r.id, r.token, r.attempt, t.id, t.tenant, t.owner, t.agent, t.public_id, c.public_id, t.state, t.is_task,
  t.last_event, r.input_number, m.body, r.request, t.memory, r.share,
  exists (select from a2a_tasks_artifact a where a.task_id = t.id)
from run r join task t on t.id = r.task_id join a2a_tasks_context c on c.id = t.context_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
order by r.round, r.id
"""

# The same where agents have limits: theirs are claimed apart, one process at a time.
CLAIM_OTHERS = CLAIM.replace(
    "and (t.agent = any", "and t.agent <> all(%(withheld)s) and (t.agent = any"
)

HEARTBEAT = """
with held as (
  select id from a2a_tasks_run where status = 'running' and token = any(%s::text[]) order by id for update
)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds)
from held where r.id = held.id returning token
"""


# What somebody else holds at this moment is left out: who waits for one row while holding others meets another who does.
HAND_BACK = """
with held as (
  select r.id, r.task_id, r.token, r.queue from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'running' and r.token = any(%(tokens)s::text[]) and t.run_token = r.token
  for update of r, t skip locked
), task as (
  update a2a_tasks_task t set run_token = '' from held h where t.id = h.task_id
)
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null,
  attempt = r.attempt - case when r.token = any(%(tried)s::text[]) then 0 else 1 end,
  error = r.error || case when r.token = any(%(tried)s::text[]) then
    'Attempt ' || r.attempt || ' on ' || r.worker || ' was stopped with its process.' || chr(10) else '' end
from held h where r.id = h.id returning h.token, h.queue
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
    full: Collection[str] = (),
    limits: Mapping[str, int] = NO_LIMITS,
) -> list[Assignment]:
    """Take up to `limit` due runs of these agents for this process, of a queue round by round, one of a task at a time.

    None of the shares that are `full`. Within a round the oldest comes first.
    Runs that nobody who hosts their agent took for A2A_ORPHAN_SECONDS are taken, too, to be failed.
    Of agents with `limits` no more are taken than may be under way on the whole host; these come first.
    """
    take = _claim_postgres if connection.vendor == "postgresql" else _claim_portable
    asked, room = time.monotonic(), min(limit, BATCH)
    wanted = _Wanted(queues, agents, worker, lease_seconds, full, frozenset(limits))
    taken: list[Assignment] = []
    for agent in sorted(limits.keys() & set(agents)):
        if len(taken) < room:
            taken += _claim_limited(take, wanted, agent, limits[agent], room - len(taken))
    if len(taken) < room:
        taken += take(wanted, room - len(taken))
    return [dataclasses.replace(assignment, asked=asked) for assignment in taken]


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    """What is claimed, and by whom."""

    queues: Sequence[str]
    agents: Sequence[str]
    worker: str
    lease_seconds: float
    full: Collection[str]
    #: Agents of which nothing is taken, not even to be failed.
    withheld: Collection[str] = ()
    #: Are runs taken that nobody hosts?
    orphans: bool = True


@transaction.atomic
def _claim_limited(
    take: Callable[[_Wanted, int], list[Assignment]],
    wanted: _Wanted,
    agent: str,
    most: int,
    room: int,
) -> list[Assignment]:
    """Take runs of one agent, of which so many may be under way. One process at a time counts them."""
    if connection.vendor == "postgresql":
        fetch("select 1 from pg_advisory_xact_lock(%s, hashtext(%s))", [COUNTING, agent])
    running = Run.objects.filter(status=RunStatus.RUNNING, task__agent=agent)
    left = most - len(running.order_by().values_list("pk")[:most])
    only = dataclasses.replace(wanted, agents=[agent], withheld=(), orphans=False)
    return take(only, min(room, left)) if left > 0 else []


def _claim_postgres(wanted: _Wanted, limit: int) -> list[Assignment]:
    values = {
        "ended": sorted(TERMINAL),
        "agents": list(wanted.agents),
        "orphan": float(conf.ORPHAN_SECONDS) if wanted.orphans else NEVER,
        "worker": wanted.worker,
        "lease": wanted.lease_seconds,
        "full": list(wanted.full),
        "withheld": list(wanted.withheld),
    }
    queues, rows = wanted.queues, list[tuple[Any, ...]]()
    statement = CLAIM_OTHERS if wanted.withheld else CLAIM
    with transaction.atomic() if len(queues) > 1 else contextlib.nullcontext():
        for queue in random.sample(queues, len(queues)):  # whichever comes first may take all room
            if len(rows) < limit and (last := furthest(queue, wanted.full)) is not None:
                now = {**values, "queue": queue, "furthest": last, "limit": limit - len(rows)}
                rows += fetch(statement, now, point="worker.claiming")
    return [_assignment(row) for row in rows]


def _assignment(row: tuple[Any, ...]) -> Assignment:
    """The assignment in a row of CLAIM."""
    run, token, attempt, task, tenant, owner, agent, task_id, context_id, state = row[:10]
    is_task, last_event, input_number, message, request, memory, share, has_artifacts = row[10:]
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
        share=share,
        artifacts=open_artifacts(task) if has_artifacts else (),
    )


@transaction.atomic
def _claim_portable(wanted: _Wanted, limit: int) -> list[Assignment]:
    ours = Q(task__agent__in=wanted.agents)
    if wanted.orphans:
        ours |= Q(due_at__lt=Now() - _lease(conf.ORPHAN_SECONDS))
    due = (
        Run.objects.filter(status=RunStatus.QUEUED, queue__in=wanted.queues, due_at__lte=Now())
        .filter(ours)
        .exclude(Q(share__in=wanted.full) | Q(task__agent__in=wanted.withheld) | behind_another())
        .order_by("round", "pk")
    )
    taken = [_take(run, wanted.worker, wanted.lease_seconds) for run in due[:limit]]
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
    said = (run.input_number, message.body, run.request, task.memory, run.share, True)
    return _assignment((run.pk, token, run.attempt + 1, *about_task, *context, *said))


def waiting(queue: str, most: int) -> int:
    """How many runs wait in a queue; it is not counted beyond `most`."""
    waiting = Run.objects.filter(status=RunStatus.QUEUED, queue=queue)
    return len(waiting.order_by("round", "pk").values_list("pk")[:most])


def unfinished(share: str, most: int) -> int:
    """How many runs of a share wait or go on; they are not counted beyond `most`."""
    mine = Run.objects.filter(share=share).values_list("pk")
    # In this order: one that begins between the two looks is counted late, the other way round it would be twice.
    going = len(mine.filter(status=RunStatus.RUNNING)[:most])
    return going + len(mine.filter(status=RunStatus.QUEUED)[: most - going])


def standing() -> dict[str, int]:
    """How many runs wait, and how many are under way, in all queues."""
    alive = (RunStatus.QUEUED, RunStatus.RUNNING)
    return {str(status): Run.objects.filter(status=status).count() for status in alive}


def heartbeat(tokens: Collection[str]) -> set[str]:
    """Extend the leases of these tokens, each by its own row's length; returns those that still hold."""
    if connection.vendor == "postgresql":
        return {token for (token,) in fetch(HEARTBEAT, [list(tokens)], point="worker.beating")}
    held = Run.objects.filter(status=RunStatus.RUNNING, token__in=tokens)
    for seconds in set(held.values_list("lease_seconds", flat=True)):
        held.filter(lease_seconds=seconds).update(lease_until=Now() + _lease(seconds))
    return set(held.values_list("token", flat=True))


def holding(runs: Collection[int]) -> set[str]:
    """The tokens that still hold, of these runs: a look between two heartbeats."""
    held = Run.objects.filter(pk__in=list(runs), status=RunStatus.RUNNING)
    return set(held.values_list("token", flat=True))


def hand_back(tokens: Collection[str], *, tried: Collection[str] = ()) -> None:
    """Give runs back, because this process stops: somebody else starts them at once.

    As if they had never begun, but for those `tried`: their attempt counts.
    """
    failpoint("worker.draining")
    for queue in _hand_back(tokens, tried):
        wakeups.announce(wakeups.Due(queue))


def _hand_back(tokens: Collection[str], tried: Collection[str]) -> set[str]:
    """Give back all that can be had at once, then the rest, one by one. Returns the queues of all of it."""
    free: list[tuple[Any, ...]] = []
    if connection.vendor == "postgresql":
        free = fetch(HAND_BACK, {"tokens": list(tokens), "tried": list(tried)})
    given = {token for token, _ in free}
    held = Run.objects.filter(token__in=set(tokens) - given, status=RunStatus.RUNNING)
    runs = list(held.values_list("task_id", "token", "queue"))
    for task, token, _ in runs:
        _hand_back_one(task, token, tried=token in tried)
    return {queue for _, queue in free} | {queue for _, _, queue in runs}


@transaction.atomic
def _hand_back_one(task: int, token: str, *, tried: bool) -> None:
    """One task a transaction: who locks several meets another who locks them the other way round."""
    if not Task.objects.filter(pk=task, run_token=token).update(run_token=""):
        return
    run = Run.objects.get(token=token, status=RunStatus.RUNNING)
    if tried:
        run.error += f"Attempt {run.attempt} on {run.worker} was stopped with its process.\n"
    else:
        run.attempt -= 1
    run.status, run.token, run.lease_until = RunStatus.QUEUED, "", None
    run.save(update_fields=["status", "token", "lease_until", "attempt", "error"])


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
        failpoint("rescue.found")
        hint = _rescue_one(key, task, max_attempts)
        if hint is not None:
            hints.append(hint)
    return hints


@transaction.atomic
def _rescue_one(key: int, task_key: int, max_attempts: int) -> wakeups.Hint | None:
    # Whoever writes for the run waits for this row. One that has it now is alive, or frozen and will soon be cut off
    # by the database; the other runs must not wait for that.
    task = log.locked(pk=task_key, skip=True)
    run = _held(skip=True, pk=key, lease_until__lt=Now())
    if task is None or run is None:
        return None  # it beat again, or somebody was quicker
    ended = run.lease_until.isoformat(timespec="seconds") if run.lease_until else "never"
    return _bury(task, run, f"its lease ended at {ended}", max_attempts, client="")


def _held(*, skip: bool = False, **which: Any) -> Run | None:
    held = Run.objects.filter(status=RunStatus.RUNNING, **which)
    if connection.vendor == "postgresql":  # its heartbeat waits now, or has been and is seen
        held = held.select_for_update(skip_locked=skip)
    return held.first()


def surrender(held: Assignment, how: str, *, max_attempts: int) -> None:
    """Say that the process of this run's agent has died, and how: as if its lease had ended now.

    Raises Fenced if the run has lost its task.
    """
    wakeups.announce(_surrender(held, how, max_attempts))


@transaction.atomic
def _surrender(held: Assignment, how: str, max_attempts: int) -> wakeups.Hint:
    task = log.locked(pk=held.task)
    run = _held(pk=held.run, token=held.token)
    if task is None or run is None:
        raise Fenced
    return _bury(task, run, how, max_attempts, client=f": {how}")


def _bury(task: Task, run: Run, how: str, max_attempts: int, *, client: str) -> wakeups.Hint:
    """End an attempt that died: another one follows, or the task fails and tells its client."""
    task.run_token = ""
    obituary = f"{run.error}Attempt {run.attempt} on {run.worker} died: {how}.\n"
    if run.attempt >= max_attempts:
        return wakeups.Committed(
            task.pk, task.last_event + 1, [_give_up(task, run, obituary, client)]
        )
    task.save(update_fields=["run_token"])
    failpoint("rescue.fenced")
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.QUEUED, token="", lease_until=None, due_at=Now(), error=obituary
    )
    return wakeups.Due(run.queue)


def note(token: str, text: str) -> None:
    """Keep with the run held by this token why its attempt ends; a rescue will add when."""
    held = Run.objects.filter(status=RunStatus.RUNNING, token=token)
    held.update(error=Concat(F("error"), Value(f"{text.rstrip()}\n")))


def _give_up(task: Task, run: Run, obituary: str, client: str) -> Recorded:
    times = "once" if run.attempt == 1 else f"{run.attempt} times"
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.FAILED,
        token="",
        lease_until=None,
        ended_at=Now(),
        error=f"The process running the agent died {times}, and the task was given up.\n{obituary}",
    )
    said = write(
        {
            "messageId": secrets.token_hex(16),
            "taskId": task.public_id,
            "contextId": task.context.public_id,
            "role": "ROLE_AGENT",
            "parts": [{"text": f"The agent was interrupted {times} and was given up{client}."}],
        }
    ).decode()
    return log.change_state(task, TaskState.FAILED, at=log.now(), message=said)
