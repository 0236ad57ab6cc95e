"""Runs in the table: claim, heartbeat, hand back, rescue. All time is the database's (law 4)."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import random
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import OperationalError, connection, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat, Now
from psycopg.errors import LockNotAvailable

from a2a_tasks import wakeups
from a2a_tasks.caller import Scope
from a2a_tasks.conf import conf
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Message, Run, RunStatus, Step, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log, workers
from a2a_tasks.store.quarantine import Quarantine, count_death
from a2a_tasks.store.records import Assignment, Fenced
from a2a_tasks.store.rounds import behind_another, furthest
from a2a_tasks.store.sql import fetch
from a2a_tasks.store.tasks import open_artifacts

__all__ = [
    "Rescued",
    "claim",
    "give_up",
    "hand_back",
    "has_more",
    "heartbeat",
    "heartbeat_locked",
    "holding",
    "new_token",
    "note",
    "queue_again",
    "rescue",
    "surrender",
    "take_back_deaths",
    "unclaim",
    "unfinished",
    "unseen",
    "waiting",
]

#: Runs taken or rescued in one transaction, and bytes of messages and memory after which a claim takes no more.
BATCH, BATCH_BYTES = 100, 8 * 1024 * 1024
#: No agent has a limit.
NO_LIMITS: Mapping[str, int] = {}
#: The first half of the advisory locks under which limited runs are counted; the second is the agent.
COUNTING = 0x0A2A
#: Seconds that nobody waits.
NEVER = 1e9
#: What a death changes in the row of a run, and what waiting for the next attempt does.
COUNTED = ("error", "deaths", "shared_deaths", "died_at_event", "furthest", "longest_life")
WAITING = ("status", "token", "lease_until", "due_at")

# Task and run are locked together or not at all: whoever cancels holds the task and waits for its runs, so a
# claim must not wait for a task while it holds a run. The token is made per row, for this one acquisition.
# An orphan is a run that nobody took for a while, nobody who has its agent was seen for as long, and it was its turn.
# The time of the statement is one that an index can be searched by; that of the clock is not.
# One queue at a time: of several at once PostgreSQL sorts all that are due, or looks for them among all runs there ever were.
CLAIM = """
with due as (
  select r.id, r.task_id, r.round, r.input_number, %(mark)s || replace(gen_random_uuid()::text, '-', '') as token,
    t.state = any(%(ended)s) as ended,
    octet_length(t.memory) + octet_length(r.request) as size
  from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'queued' and r.queue = %(queue)s and r.due_at <= clock_timestamp()
    and r.round <= %(furthest)s and r.share <> all(%(full)s) and r.shared_deaths < 2
    and (t.agent = any(%(agents)s) or r.due_at < clock_timestamp() - make_interval(secs => %(orphan)s)
      and not exists (select from a2a_tasks_worker w where w.seen_at > statement_timestamp() - make_interval(secs => %(unseen)s)
        and w.queues ? r.queue and w.agents ? t.agent)
      and not exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
        and e.ended_at > clock_timestamp() - make_interval(secs => %(orphan)s)))
    and not exists (select from a2a_tasks_run e where e.task_id = r.task_id and e.id < r.id
      and e.status in ('queued', 'running'))
  order by r.round, r.id limit %(limit)s
  for update of r, t skip locked
), fit as (
  select s.* from (
    select d.*, sum(d.size + octet_length(m.body)) over (order by d.round, d.id) - d.size - octet_length(m.body) as before
    from due d join a2a_tasks_message m on m.task_id = d.task_id and m.number = d.input_number
  ) s where s.before < %(most)s
), task as (
  update a2a_tasks_task t set run_token = d.token, batches = 0 from fit d where t.id = d.task_id and not d.ended
  returning t.*
), run as (
  update a2a_tasks_run r set status = case when d.ended then 'dropped' else 'running' end,
    attempt = r.attempt + case when d.ended then 0 else 1 end,
    token = case when d.ended then '' else d.token end, worker = %(worker)s, lease_seconds = %(lease)s,
    lease_until = case when d.ended then null else clock_timestamp() + make_interval(secs => %(lease)s) end,
    started_at = case when d.ended then null else clock_timestamp() end,
    ended_at = case when d.ended then clock_timestamp() end, company = %(carrying)s + (select count(*) from fit)
  from fit d where r.id = d.id
  returning r.id, r.task_id, r.token, r.attempt, r.input_number, r.request, r.share, r.round, r.shared_deaths, r.longest_life
)
select r.id, r.token, r.attempt, t.id, t.tenant, t.owner, t.agent, t.public_id, c.public_id, t.state, t.is_task,
  t.last_event, r.input_number, m.body, r.request, t.memory, r.share, r.shared_deaths, r.longest_life,
  (select array_agg(array[a.artifact_id, a.position::text, (a.body = '')::text] order by a.position)
   from a2a_tasks_artifact a where a.task_id = t.id)
from run r join task t on t.id = r.task_id join a2a_tasks_context c on c.id = t.context_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
order by r.round, r.id
"""

#: Suspects are claimed apart. The deaths stand in the text, so that PostgreSQL sees that its index `run_suspect` fits.
#: Processes of their own are given in turn: whoever has just died in one waits behind the others.
CLAIMS = {
    Quarantine.NONE: CLAIM,
    Quarantine.GROUP: CLAIM.replace("r.shared_deaths < 2", "r.shared_deaths = 2"),
    Quarantine.PROCESS: CLAIM.replace("r.shared_deaths < 2", "r.shared_deaths >= 3").replace(
        "order by r.round, r.id limit", "order by r.due_at, r.id limit"
    ),
}
#: The twin of these conditions.
DEATHS = {
    Quarantine.NONE: Q(shared_deaths__lt=2),
    Quarantine.GROUP: Q(shared_deaths=2),
    Quarantine.PROCESS: Q(shared_deaths__gte=3),
}

# Rows that somebody else holds at this moment are left out: waiting for one would cost all other leases.
HEARTBEAT = """
with held as (
  select id from a2a_tasks_run where status = 'running' and token = any(%(tokens)s::text[]) order by id
  for update skip locked
)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds), company = %(carrying)s
from held where r.id = held.id returning token
"""
HEARTBEAT_LOCKED = HEARTBEAT.replace(" skip locked", "")
#: Longest that a heartbeat waits for one row, in seconds.
LOCK_SECONDS = 0.3


# What somebody else holds at this moment is left out: who waits for one row while holding others meets another who does.
HAND_BACK = """
with held as (
  select r.id, r.task_id, r.token, r.queue from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'running' and r.token = any(%(tokens)s::text[]) and t.run_token = r.token
  for update of r, t skip locked
), task as (
  update a2a_tasks_task t set run_token = '' from held h where t.id = h.task_id
)
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(),
  attempt = r.attempt - case when r.token = any(%(tried)s::text[]) then 0 else 1 end,
  error = r.error || case when r.token = any(%(tried)s::text[]) then
    'Attempt ' || r.attempt || ' on ' || r.worker || ' was stopped with its process.' || chr(10) else '' end
from held h where r.id = h.id returning h.token, h.queue
"""

QUEUE_AGAIN = """
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(), error = d.error,
  deaths = d.deaths, shared_deaths = d.shared_deaths, died_at_event = d.died_at_event, furthest = d.furthest,
  longest_life = d.longest_life
from unnest(%(pk)s::bigint[], %(error)s::text[], %(deaths)s::int[], %(shared_deaths)s::int[], %(died_at_event)s::int[],
  %(furthest)s::int[], %(longest_life)s::float8[])
  as d(id, error, deaths, shared_deaths, died_at_event, furthest, longest_life)
where r.id = d.id returning r.id
"""


def new_token() -> str:
    """A token for one acquisition; never a worker's name, which would outlive it."""
    return secrets.token_urlsafe(18)


def _lease(seconds: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


def claim(  # noqa: PLR0913 - a claim is what it asks for
    queues: Sequence[str],
    agents: Sequence[str],
    *,
    worker: str,
    limit: int,
    lease_seconds: float,
    carrying: int = 0,
    full: Collection[str] = (),
    limits: Mapping[str, int] = NO_LIMITS,
    quarantine: Quarantine = Quarantine.NONE,
    orphans: bool = True,
    mark: str = "",
) -> list[Assignment]:
    """Take up to `limit` due runs of these agents for this process, of a queue round by round, one of a task at a time.

    None of the shares that are `full`. Within a round the oldest comes first. Runs in quarantine are claimed apart.
    Runs that nobody took for A2A_ORPHAN_SECONDS are taken, too, to be failed, if no process with their agent is there and
    `orphans` says so.
    Of agents with `limits` no more are taken than may be under way on the whole host; these come first.
    `mark`, of at most 8 characters, begins the tokens, for `unclaim`.
    """
    room = min(limit, BATCH)
    wanted = _Wanted(
        queues,
        agents,
        worker,
        lease_seconds,
        carrying,
        full,
        quarantine,
        frozenset(limits),
        orphans,
        mark,
    )
    taken: list[Assignment] = []
    for agent in sorted(limits.keys() & set(agents)):
        if len(taken) < room:
            taken += _claim_limited(wanted, agent, limits[agent], room - len(taken))
    if len(taken) < room:
        taken += _claim(wanted, room - len(taken))
    return taken


def has_more(taken: Sequence[Assignment], limit: int) -> bool:
    """May there be more to claim than these, of at most `limit`? A character takes up to four bytes."""
    size = sum(len(one.input) + len(one.memory) + len(one.request) for one in taken)
    return len(taken) >= min(limit, BATCH) or size >= BATCH_BYTES / 4


@dataclasses.dataclass(frozen=True, slots=True)
class _Wanted:
    """What is claimed, and by whom."""

    queues: Sequence[str]
    agents: Sequence[str]
    worker: str
    lease_seconds: float
    #: How many runs it has already.
    carrying: int
    full: Collection[str]
    quarantine: Quarantine
    #: Agents of which nothing is taken, not even to be failed.
    withheld: Collection[str] = ()
    #: Are runs taken that nobody hosts?
    orphans: bool = True
    #: The beginning of their tokens.
    mark: str = ""


@transaction.atomic
def _claim_limited(wanted: _Wanted, agent: str, most: int, room: int) -> list[Assignment]:
    """Take runs of one agent, of which so many may be under way. One process at a time counts them."""
    if connection.vendor == "postgresql":
        fetch("select 1 from pg_advisory_xact_lock(%s, hashtext(%s))", [COUNTING, agent])
    running = Run.objects.filter(status=RunStatus.RUNNING, task__agent=agent)
    left = most - len(running.order_by().values_list("pk")[:most])
    only = dataclasses.replace(wanted, agents=[agent], withheld=(), orphans=False)
    return _claim(only, min(room, left)) if left > 0 else []


def _claim(wanted: _Wanted, limit: int) -> list[Assignment]:
    """No lease is older than `asked`: what was waited for before, as a lock or a thread, does not shorten it."""
    asked = time.monotonic()
    claim = _claim_postgres if connection.vendor == "postgresql" else _claim_portable
    return [dataclasses.replace(assignment, asked=asked) for assignment in claim(wanted, limit)]


def _claim_postgres(wanted: _Wanted, limit: int) -> list[Assignment]:
    values = {
        "ended": sorted(TERMINAL),
        "agents": list(wanted.agents),
        "orphan": float(conf.ORPHAN_SECONDS) if wanted.orphans else NEVER,
        "unseen": unseen(),
        "worker": wanted.worker,
        "lease": wanted.lease_seconds,
        "carrying": wanted.carrying,
        "most": BATCH_BYTES,
        "full": list(wanted.full),
        "withheld": list(wanted.withheld),
        "mark": wanted.mark,
    }
    queues, rows = wanted.queues, list[tuple[Any, ...]]()
    statement = CLAIMS[wanted.quarantine]
    if wanted.withheld:  # agents with limits are claimed apart, by one process at a time
        statement = statement.replace(
            "and (t.agent = any", "and t.agent <> all(%(withheld)s) and (t.agent = any"
        )
    with transaction.atomic() if len(queues) > 1 else contextlib.nullcontext():
        for queue in random.sample(queues, len(queues)):  # whichever comes first may take all room
            if len(rows) < limit and (last := furthest(queue, wanted.full)) is not None:
                now = {**values, "queue": queue, "furthest": last, "limit": limit - len(rows)}
                rows += fetch(statement, now, point="worker.claiming")
    return [_assignment((*row[:-1], _artifacts(row[-1] or ()))) for row in rows]


def unseen() -> float:
    """Return for how many seconds nobody with an agent must have been seen for the host to say that there is none."""
    return max(float(conf.ORPHAN_SECONDS), workers.patience().total_seconds())


def _artifacts(rows: Iterable[tuple[str, str, str]]) -> tuple[tuple[str, int, bool], ...]:
    return tuple((key, int(position), growing == "true") for key, position, growing in rows)


def _assignment(row: tuple[Any, ...]) -> Assignment:
    """The assignment in a row of CLAIM."""
    run, token, attempt, task, tenant, owner, agent, task_id, context_id, state = row[:10]
    is_task, last_event, input_number, message, request, memory, share = row[10:17]
    shared_deaths, longest_life, artifacts = row[17:]
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
        quarantine=Quarantine.after(shared_deaths),
        longest_life=longest_life,
        artifacts=artifacts,
    )


@transaction.atomic
def _claim_portable(wanted: _Wanted, limit: int) -> list[Assignment]:
    ours = Q(task__agent__in=wanted.agents)
    if wanted.orphans:
        since = Now() - _lease(conf.ORPHAN_SECONDS)
        before = Run.objects.filter(task=OuterRef("task"), pk__lt=OuterRef("pk"))
        orphaned = Q(due_at__lt=since) & ~Q(Exists(before.filter(ended_at__gt=since)))
        for queue, agents in workers.hosted(unseen()).items():
            orphaned &= ~Q(queue=queue, task__agent__in=agents)
        ours |= orphaned
    due = (
        Run.objects.filter(status=RunStatus.QUEUED, queue__in=wanted.queues, due_at__lte=Now())
        .filter(ours, DEATHS[wanted.quarantine])
        .exclude(Q(share__in=wanted.full) | Q(task__agent__in=wanted.withheld) | behind_another())
        .order_by("due_at" if wanted.quarantine is Quarantine.PROCESS else "round", "pk")
    )
    found = list(due[:limit])
    taken = [_take(run, wanted, company=wanted.carrying + len(found)) for run in found]
    return [assignment for assignment in taken if assignment is not None]


def _take(run: Run, wanted: _Wanted, *, company: int) -> Assignment | None:
    """Hold the run, and the task for it; a task that has ended meanwhile needs no run."""
    token = wanted.mark + new_token()
    open_ = Task.objects.filter(pk=run.task_id).exclude(state__in=TERMINAL)
    if not open_.update(run_token=token, batches=0):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.DROPPED, ended_at=Now())
        return None
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING,
        attempt=F("attempt") + 1,
        token=token,
        worker=wanted.worker,
        lease_seconds=wanted.lease_seconds,
        lease_until=Now() + _lease(wanted.lease_seconds),
        started_at=Now(),
        company=company,
    )
    task = Task.objects.select_related("context").get(pk=run.task_id)
    message = Message.objects.get(task_id=task.pk, number=run.input_number)
    about_task = (task.pk, task.tenant, task.owner, task.agent, task.public_id)
    context = (task.context.public_id, task.state, task.is_task, task.last_event)
    said = (run.input_number, message.body, run.request, task.memory, run.share)
    deaths = (run.shared_deaths, run.longest_life)
    before = (run.pk, token, run.attempt + 1, *about_task, *context, *said, *deaths)
    return _assignment((*before, open_artifacts(task.pk)))


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


def heartbeat(tokens: Collection[str], *, carrying: int | None = None) -> set[str]:
    """Extend the leases of these tokens, each by its own row's length; returns those that were extended.

    The others are lost, or somebody holds their rows at this moment. `carrying` is how many runs the process has, if
    these are not all: it is written down for whoever finds the process dead.
    """
    carrying = len(tokens) if carrying is None else carrying
    if connection.vendor == "postgresql":
        values = {"tokens": list(tokens), "carrying": carrying}
        return {token for (token,) in fetch(HEARTBEAT, values, point="worker.beating")}
    held = Run.objects.filter(status=RunStatus.RUNNING, token__in=tokens)
    for seconds in set(held.values_list("lease_seconds", flat=True)):
        due = held.filter(lease_seconds=seconds)
        due.update(lease_until=Now() + _lease(seconds), company=carrying)
    return set(held.values_list("token", flat=True))


def heartbeat_locked(token: str, *, carrying: int) -> bool:
    """Extend one lease whose row somebody holds, and wait a moment for that. False: the row was not to be had."""
    if connection.vendor != "postgresql":
        return token in heartbeat([token], carrying=carrying)
    try:
        with transaction.atomic():
            milliseconds = str(int(LOCK_SECONDS * 1000))
            fetch("select set_config('lock_timeout', %s, true)", [milliseconds])
            return bool(fetch(HEARTBEAT_LOCKED, {"tokens": [token], "carrying": carrying}))
    except OperationalError as fault:
        if isinstance(fault.__cause__, LockNotAvailable):
            return False
        raise


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
    run.due_at = Now()
    run.save(update_fields=[*WAITING, "attempt", "error"])


def unclaim(worker: str, mark: str) -> None:
    """Give back what this process has claimed under this mark, because the answer was lost: no agent has begun."""
    lost = Run.objects.filter(status=RunStatus.RUNNING, worker=worker, token__startswith=mark)
    if tokens := list(lost.values_list("token", flat=True)):
        hand_back(tokens)


def take_back_deaths(attempts: Mapping[int, int]) -> None:
    """Uncount the deaths of attempts, by run, whose process lives after all: the database did not hear it.

    Each attempt is named at most once, after its process has given it back. What was given up stays so.
    """
    for run, attempt in attempts.items():
        counted = Run.objects.filter(pk=run, attempt__gte=attempt, deaths__gt=0, ended_at=None)
        said = Concat("error", Value(f"Attempt {attempt} had not died: its process was cut off.\n"))
        counted.update(deaths=F("deaths") - 1, error=said)


class Rescued(NamedTuple):
    """What a look at lost runs has done."""

    queued: int = 0
    #: Keys of runs that have no attempt left.
    spent: Sequence[int] = ()
    #: Keys of runs that somebody had locked, so that their processes could not beat either.
    locked: Collection[int] = ()


def rescue(*, max_attempts: int, without: Collection[int] = ()) -> int:
    """Take runs whose lease has ended from their dead processes; returns how many.

    They are queued again, or after `max_attempts` deaths that count their tasks fail, visibly.
    `without`: keys of runs to be left alone.
    """
    found = queue_again(max_attempts=max_attempts, without=without)
    return found.queued + sum(give_up(run, max_attempts=max_attempts) for run in found.spent)


def queue_again(
    *, max_attempts: int, without: Collection[int] = (), watched: Collection[int] = ()
) -> Rescued:
    """Queue the runs whose lease has ended.

    `without`: keys of runs to be left alone; of those that are `watched` it is only told whether they are locked.
    """
    lost = Run.objects.filter(status=RunStatus.RUNNING, lease_until__lt=Now()).order_by("pk")
    others = lost.exclude(pk__in={*without, *watched}).values_list("pk", flat=True)[:BATCH]
    keys = {*others, *lost.filter(pk__in=watched).values_list("pk", flat=True)}
    if not keys:
        return Rescued()
    failpoint("rescue.found")
    queued, spent, free = _queue_again(lost.filter(pk__in=keys), max_attempts, watched)
    for queue in {run.queue for run in queued}:
        wakeups.announce(wakeups.Due(queue))
    return Rescued(len(queued), spent, keys - free)


@transaction.atomic
def _queue_again(
    lost: QuerySet[Run], max_attempts: int, watched: Collection[int]
) -> tuple[list[Run], list[int], set[int]]:
    """Return the runs that were queued, the keys of those without an attempt left, and of all that were not locked."""
    # Whoever writes for a run waits for its task's row. One that has it now is alive, or frozen and will soon be cut off
    # by the database; the other runs must not wait for that.
    if connection.vendor == "postgresql":
        lost = lost.select_for_update(of=("self", "task"), skip_locked=True)
    unread = ("request", "task__status_message", "task__metadata", "task__memory")
    free = list(lost.select_related("task").defer(*unread))
    found = [run for run in free if run.pk not in watched]
    carried, stepped = _carried({run.worker for run in found}), _stepped(found)
    for run in found:
        _die(run, _late(run), _beside(run, carried), stepped=run.pk in stepped)
    again = [run for run in found if run.deaths < max_attempts]
    Task.objects.filter(pk__in=[run.task_id for run in again]).update(run_token="")
    _save_as_queued(again)
    spent = [run.pk for run in found if run.deaths >= max_attempts]
    return again, spent, {run.pk for run in free}


def give_up(key: int, *, max_attempts: int) -> bool:
    """Fail the task of a lost run that has no attempt left. False: it beat again, or another process was quicker."""
    hint = _give_up_lost(key, max_attempts)
    if hint is not None:
        wakeups.announce(hint)
    return hint is not None


@transaction.atomic
def _give_up_lost(key: int, max_attempts: int) -> wakeups.Hint | None:
    task = log.locked(pk=Run.objects.values_list("task_id", flat=True).get(pk=key), skip=True)
    run = _held(skip=True, pk=key, lease_until__lt=Now())
    if task is None or run is None:
        return None
    beside = _beside(run, _carried({run.worker}))
    return _bury(task, run, _late(run), max_attempts, beside=beside, client="")


def _held(*, skip: bool = False, **which: Any) -> Run | None:
    held = Run.objects.filter(status=RunStatus.RUNNING, **which)
    if connection.vendor == "postgresql":  # its heartbeat waits now, or has been and is seen
        held = held.select_for_update(skip_locked=skip)
    return held.first()


def _late(run: Run) -> str:
    ended = run.lease_until.isoformat(timespec="seconds") if run.lease_until else "never"
    return f"its lease ended at {ended}"


def _carried(names: Collection[str]) -> dict[str, int]:
    """How many runs each of these processes still holds, by the table."""
    held = Run.objects.filter(status=RunStatus.RUNNING, worker__in=names)
    return dict(held.order_by().values_list("worker").annotate(Count("pk")))


def _beside(run: Run, carried: Mapping[str, int]) -> int:
    """How many other runs its process carried: as it said itself with its last heartbeat, or as the table has it."""
    return max(run.company, carried.get(run.worker, 0), 1) - 1


def _stepped(found: Collection[Run]) -> set[int]:
    """Those of the runs whose attempt has kept a step."""
    turns = Step.objects.filter(task_id__in=[run.task_id for run in found]).order_by()
    kept = turns.values_list("task_id", "input_number").annotate(Max("created_at"))
    newest = {(task, number): at for task, number, at in kept}
    return {
        run.pk
        for run in found
        if (at := newest.get((run.task_id, run.input_number)))
        and run.started_at is not None
        and at >= run.started_at
    }


def surrender(held: Assignment, how: str, *, max_attempts: int) -> None:
    """Say that this run's attempt is over through its own fault, and how: its agent's process died. It counts.

    Raises Fenced if the run has lost its task.
    """
    wakeups.announce(_surrender(held, how, max_attempts))


@transaction.atomic
def _surrender(held: Assignment, how: str, max_attempts: int) -> wakeups.Hint:
    task = log.locked(pk=held.task)
    run = _held(pk=held.run, token=held.token)
    if task is None or run is None:
        raise Fenced
    return _bury(task, run, how, max_attempts, beside=0, client=f": {how}")


def _bury(
    task: Task, run: Run, how: str, max_attempts: int, *, beside: int, client: str
) -> wakeups.Hint:
    """End an attempt that died: another one follows, or the task fails and tells its client."""
    run.task, task.run_token = task, ""
    _die(run, how, beside, stepped=bool(_stepped([run])))
    if run.deaths >= max_attempts:
        return wakeups.Committed(task.pk, task.last_event + 1, [_give_up(task, run, client)])
    task.save(update_fields=["run_token"])
    _save_as_queued([run])
    return wakeups.Due(run.queue)


def _die(run: Run, how: str, beside: int, *, stepped: bool) -> None:
    """Count a death, and say in the row how it was."""
    count_death(run, run.task.last_event, beside=beside, stepped=stepped)
    others = f" beside {beside} other runs" if beside else ""
    run.error += f"Attempt {run.attempt} on {run.worker} died{others}: {how}.\n"


def _save_as_queued(found: Sequence[Run]) -> None:
    """Let the runs wait for their next attempt, with what their deaths have changed."""
    failpoint("rescue.fenced")
    if connection.vendor == "postgresql":
        columns = {name: [getattr(run, name) for run in found] for name in ("pk", *COUNTED)}
        fetch(QUEUE_AGAIN, columns)
        return
    for run in found:
        run.status, run.token, run.lease_until = RunStatus.QUEUED, "", None
        run.due_at = Now()
        run.save(update_fields=[*COUNTED, *WAITING])


def note(token: str, text: str) -> None:
    """Keep with the run held by this token why its attempt ends; a rescue will add when."""
    held = Run.objects.filter(status=RunStatus.RUNNING, token=token)
    held.update(error=Concat(F("error"), Value(f"{text.rstrip()}\n")))


def _give_up(task: Task, run: Run, client: str) -> Recorded:
    times = "once" if run.attempt == 1 else f"{run.attempt} times"
    run.status, run.token, run.lease_until = RunStatus.FAILED, "", None
    run.ended_at = Now()
    run.error = (
        f"The process running the agent died {times}, and the task was given up.\n{run.error}"
    )
    run.save(update_fields=[*COUNTED, *WAITING, "ended_at"])
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
