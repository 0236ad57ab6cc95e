"""The store's statements for PostgreSQL: each does the work of many callers in one transaction.

A statement does all its checks and writes at once, so that no other transaction comes between. Values are passed as
arrays, one for each column. Rows are locked in the order of their ids, and a task together with its run: two orders
would be a deadlock. See `interface` for the contract of each function, and docs/decisions/0002.
"""

from __future__ import annotations

import contextlib
import datetime
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable
from psycopg.rows import namedtuple_row

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import BEHIND, Run
from a2a_tasks.protocol.lifecycle import TERMINAL, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, workers
from a2a_tasks.store.backend import call_news, fair_queue
from a2a_tasks.store.backend.conversation_statements import change_conversations
from a2a_tasks.store.backend.statements import (
    READ_AFTER,
    empty_reopened,
    fetch,
    is_wanted,
)
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import (
    CLAIM_BYTES,
    REPEAT_SECONDS,
    Batch,
    ChatMove,
    ClaimedRun,
    FoundChat,
    InsertedTask,
    LogPosition,
    NewTask,
    StepConflict,
    StepResult,
    StoredTask,
    WantedRuns,
    make_recorded,
)
from a2a_tasks.store.segments import DIED, HANDED_BACK, write_end

max_threads: int | None = None
has_word_index = True
key_share = " for key share"

# --- new tasks ------------------------------------------------------------------------------------

#: The columns of new tasks: the name, and its type and value.
NEW_TASK: dict[str, tuple[str, Callable[[NewTask], Any]]] = {
    "tenant": ("text", lambda new: new.scope.tenant),
    "owner": ("text", lambda new: new.scope.owner),
    "maker": ("text", lambda new: new.maker),
    "agent": ("text", lambda new: new.scope.agent),
    "id": ("text", lambda new: new.id),
    "context_id": ("text", lambda new: new.context_id),
    "is_task": ("bool", lambda new: new.is_task),
    "at": ("timestamptz", lambda new: new.at),
    "metadata": ("text", lambda new: new.metadata),
    "dialect": ("text", lambda new: new.dialect),
    "binding": ("text", lambda new: new.binding),
    "role": ("text", lambda new: new.role),
    "message": ("text", lambda new: new.message),
    "opening": ("text", lambda new: new.opening),
    "queue": ("text", lambda new: new.queue),
    "share": ("text", lambda new: new.share),
    "request": ("text", lambda new: new.request),
    "request_id": ("text", lambda new: new.request_id),
    "actor": ("text", lambda new: new.actor),
    "detail": ("text", lambda new: audit.encode_detail(new.detail)),
    "ordered": ("bool", lambda new: new.ordered),
    "token": ("text", lambda new: new.hold.token if new.hold else ""),
    "worker": ("text", lambda new: new.hold.worker if new.hold else ""),
    "lease": ("float8", lambda new: new.hold.lease_seconds if new.hold else 0.0),
}


def _unnest(name: str, columns: dict[str, str]) -> str:
    """Return SQL that makes rows out of the arrays of these columns; `n` is the position of a row."""
    arrays = ", ".join(f"%({column})b::{kind}[]" for column, kind in columns.items())
    return f"unnest({arrays}) as {name}({', '.join(columns)})"


WRITE_TASKS = f"""
, context as (
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
  returning id, public_id, tenant, owner, agent, context_id
), keyed as (
  select i.*, t.id as key, case when i.ordered then t.context_id end as ordered_in,
    i.ordered and i.token = '' and (row_number() over (partition by t.context_id, i.ordered order by i.n) > 1
      or exists (select from a2a_tasks_run e where e.ordered_in = t.context_id and e.status in ('queued', 'running')))
      as behind
  from input i join task t
    on (t.public_id, t.agent, t.owner, t.tenant) = (i.id, i.agent, i.owner, i.tenant)
), message as (
  insert into a2a_tasks_message (task_id, number, role, body, opening)
  select key, 1, role, message, opening from keyed
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, body) select key, 1, 1, '', '' from keyed
), joining as (
  select j.queue, j.share, 1 + greatest(
    coalesce((select r.round from a2a_tasks_run r where r.status = 'queued' and r.queue = j.queue and r.round < {BEHIND}
      and not {fair_queue.IS_BEHIND_ANOTHER}
      order by r.round, r.id limit 1), 0),
    coalesce((select max(r.round) from a2a_tasks_run r
      where r.status = 'queued' and r.queue = j.queue and r.share = j.share and r.round < {BEHIND}), 0)) as round
  from (select distinct queue, share from keyed where token = '' and not behind) j
), audit as (
  insert into a2a_tasks_auditentry (tenant, agent, actor, action, object, outcome, detail, request)
  select tenant, agent, actor, 'task.send', id, 'done', detail, request_id from keyed
), run as (
  insert into a2a_tasks_run (task_id, input_number, queue, agent, share, round, status, attempt, token, worker,
    lease_seconds, lease_until, started_at, request, error, ordered_in)
  select key, 1, k.queue, k.agent, k.share, case when k.behind then {BEHIND} else
    coalesce(j.round - 1 + row_number() over (partition by k.behind, j.queue, j.share order by n), 0) end,
    case when token = '' then 'queued' else 'running' end,
    case when token = '' then 0 else 1 end, token, worker, lease,
    case when token <> '' then clock_timestamp() + make_interval(secs => lease) end,
    case when token <> '' then clock_timestamp() end, request, '', k.ordered_in
  from keyed k left join joining j on k.token = '' and (j.queue, j.share) = (k.queue, k.share)
  order by k.n
  returning task_id, id
)
"""  # noqa: S608 - names of ours
TELL_TASKS = """
select k.n, k.key, r.id, k.behind from keyed k join run r on r.task_id = k.key order by k.n
"""


def _give(columns: dict[str, tuple[str, Callable[[NewTask], Any]]]) -> str:
    kinds = {"n": "int"} | {name: kind for name, (kind, _) in columns.items()}
    return f"(select * from {_unnest('i', kinds)})"  # noqa: S608 - names of ours


INSERT_TASKS = f"with input as {_give(NEW_TASK)} {WRITE_TASKS} {TELL_TASKS}"
#: The columns of new tasks with places in chats.
PLACED_TASK: dict[str, tuple[str, Callable[[NewTask], Any]]] = NEW_TASK | {
    "asked": ("text", lambda new: new.place.asked if new.place else ""),
    "place": ("bigint", lambda new: new.place.row if new.place else 0),
    "before": ("text", lambda new: new.place.before if new.place else ""),
}
# The conversations are locked in the order of their ids. A transaction that waited for one reads its digest again. Of two
# messages that would continue one, the first does.
INSERT_PLACED = f"""
with given as {_give(PLACED_TASK)}, held as (
  select p.id, g.n from a2a_tasks_chatprefix p join given g on (g.place, g.before) = (p.id, p.digest)
  order by p.id for update of p
), input as (
  select * from given where place = 0 or n in (select min(n) from held group by id)
) {WRITE_TASKS}, begun as (
  insert into a2a_tasks_chatprefix (digest, task_id, number)
  select asked, key, 1 from keyed where place = 0 and asked <> '' order by n
), moved as (
  update a2a_tasks_chatprefix p set digest = k.asked, task_id = k.key, number = 1, updated_at = statement_timestamp()
  from keyed k where p.id = k.place
) {TELL_TASKS}
"""  # noqa: S608 - names of ours


def insert_tasks(news: Sequence[NewTask]) -> list[InsertedTask | None]:
    """See `interface.Backend`."""
    placed = any(new.place for new in news)
    kinds = PLACED_TASK if placed else NEW_TASK
    columns = {name: [value(new) for new in news] for name, (_, value) in kinds.items()}
    values = {"n": list(range(len(news))), **columns}
    size = sum(len(new.message) + len(new.request) for new in news)
    statement = INSERT_PLACED if placed else INSERT_TASKS
    rows = fetch(statement, values, point="accept.inserted", size=size)
    written = {n: InsertedTask(task, run, behind) for n, task, run, behind in rows}
    return [written.get(n) for n in range(len(news))]


# --- conversations of chats -----------------------------------------------------------------------

# `|| ''` prevents the planner from beginning with the tasks of the owner, as it would on a young table.
# A digest is of one caller; the few newest come first, since the planner would read and sort all that begin alike.
FIND_CHATS = """
select i.n, found.* from unnest(%(n)s::int[], %(digest)s::text[], %(tenant)s::text[], %(agent)s::text[],
  %(owner)s::text[], %(maker)s::text[]) as i(n, digest, tenant, agent, owner, maker)
cross join lateral (
  select p.id, p.digest, t.public_id, c.public_id, t.state, p.number,
    p.updated_at > statement_timestamp() - make_interval(secs => %(seconds)s)
  from (select * from a2a_tasks_chatprefix where digest = i.digest order by updated_at desc, id desc limit 10) p
  join a2a_tasks_task t on t.id = p.task_id join a2a_tasks_context c on c.id = t.context_id
  where t.tenant || '' = i.tenant and t.agent || '' = i.agent and t.owner || '' = i.owner
    and (i.maker = '' or t.maker = i.maker)
  order by p.updated_at desc, p.id desc limit 1
) found
order by i.n
"""


def find_chats(asked: Sequence[tuple[OwnerScope, Collection[str]]]) -> list[list[FoundChat]]:
    """See `interface.Backend`."""
    lookups = [
        (n, name, scope, part)
        for n, (scope, names) in enumerate(asked)
        for name in names
        for part in scope.parts
    ]
    values = {
        "n": [n for n, *_ in lookups],
        "digest": [name for _, name, *_ in lookups],
        "tenant": [scope.tenant for *_, scope, _ in lookups],
        "agent": [scope.agent for *_, scope, _ in lookups],
        "owner": [part.owner for *_, part in lookups],
        "maker": [part.created_by for *_, part in lookups],
        "seconds": REPEAT_SECONDS,
    }
    found: list[list[FoundChat]] = [[] for _ in asked]
    for n, row, digest, task, context, state, number, recent in fetch(FIND_CHATS, values):
        found[n].append(FoundChat(row, digest, task, context, TaskState(state), number, recent))
    return found


# Rows are locked in the order of their ids.
MOVE_CHATS = """
with held as (
  select p.id, i.digest from unnest(%(task)s::text[], %(before)s::text[], %(digest)s::text[]) as i(task, before, digest)
  join a2a_tasks_chatprefix p on p.digest = i.before join a2a_tasks_task t on t.id = p.task_id and t.public_id = i.task
  order by p.id for update of p
)
update a2a_tasks_chatprefix p set digest = h.digest, updated_at = statement_timestamp() from held h where p.id = h.id
returning p.id
"""


def move_chats(moves: Sequence[ChatMove]) -> None:
    """See `interface.Backend`."""
    tasks, befores, digests = zip(*moves, strict=True)
    fetch(MOVE_CHATS, {"task": list(tasks), "before": list(befores), "digest": list(digests)})


# --- batches of runs ------------------------------------------------------------------------------

#: The columns of batches: the name, and its type and value.
BATCH: dict[str, tuple[str, Callable[[Batch], Any]]] = {
    "task": ("bigint", lambda batch: batch.task),
    "run": ("bigint", lambda batch: batch.run),
    "token": ("text", lambda batch: batch.token),
    "count": ("int", lambda batch: len(batch.events)),
    "state": ("text", lambda batch: batch.status.state.value if batch.status else None),
    "at": ("timestamptz", lambda batch: batch.status.at if batch.status else None),
    "status_message": ("text", lambda batch: batch.status.message if batch.status else None),
    "status_text": ("text", lambda batch: batch.status.text if batch.status else None),
    "memory": ("text", lambda batch: batch.memory),
    "reveal": ("bool", lambda batch: batch.reveal),
    "ended": ("text", lambda batch: batch.end.status if batch.end else None),
    "error": ("text", lambda batch: batch.end.error if batch.end else ""),
    "ends_task": ("bool", lambda batch: batch.ends_task),
    "after": ("int", lambda batch: batch.after),
}
# A batch is written only if the task row still has the run's token. Runs are locked in the order of their ids, as by the
# heartbeat.
APPEND = f"""
with batch as (
  select * from {_unnest("b", {"n": "int"} | {name: kind for name, (kind, _) in BATCH.items()})}
), held as (
  update a2a_tasks_task t set last_event = t.last_event + b.count, batches = t.batches + 1,
    state = coalesce(b.state, t.state), status_at = coalesce(b.at, t.status_at),
    status_message = coalesce(b.status_message, t.status_message),
    status_text = coalesce(b.status_text, t.status_text),
    memory = coalesce(b.memory, t.memory), is_task = t.is_task or b.reveal,
    run_token = case when b.ended is null then t.run_token else '' end
  from batch b where t.id = b.task and t.run_token = b.token and b.token <> '' and t.batches = coalesce(b.after, t.batches)
  returning b.n, b.run, b.ended, b.error, b.ends_task, t.id, t.last_event, t.last_event - b.count as base
), event as (
  insert into a2a_tasks_event (task_id, number, kind, state, run, body)
  select h.id, h.base + e.i, e.kind, e.state, h.run, e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(states)b::text[],
    %(bodies)b::text[]) as e(n, i, kind, state, body) join held h on h.n = e.n
), message as (
  insert into a2a_tasks_message (task_id, number, role, body)
  select h.id, h.base + e.i, 'ROLE_AGENT', e.body
  from unnest(%(event_n)s::int[], %(event_i)s::int[], %(kinds)s::smallint[], %(bodies)b::text[])
    as e(n, i, kind, body) join held h on h.n = e.n
  where e.kind = 4
), artifact as (
  insert into a2a_tasks_artifact (task_id, position, artifact_id, first_event, body)
  select h.id, a.position, a.artifact_id, h.base + 1 + a.start, a.body
  from unnest(%(artifact_n)s::int[], %(positions)s::int[], %(artifact_ids)b::text[], %(starts)s::int[],
    %(artifacts)b::text[]) as a(n, position, artifact_id, start, body) join held h on h.n = a.n
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
"""  # noqa: S608 - names of ours


def append_batches(batches: Sequence[Batch]) -> list[int | None]:
    """See `interface.Backend`."""
    if not any(batch.reopened or batch.conversation for batch in batches):
        return _append(batches)
    with transaction.atomic():
        written = _append(batches)
        held = [batch for batch, last in zip(batches, written, strict=True) if last]
        for batch in held:
            if batch.reopened:
                empty_reopened(batch)
        change_conversations(held)
        return written


def _append(batches: Sequence[Batch]) -> list[int | None]:
    columns = {name: [value(batch) for batch in batches] for name, (_, value) in BATCH.items()}
    events = [
        (n, i, event) for n, batch in enumerate(batches) for i, event in enumerate(batch.events, 1)
    ]
    artifacts = [(n, row) for n, batch in enumerate(batches) for row in batch.artifacts]
    values = {
        "n": list(range(len(batches))),
        **columns,
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
    point = "worker.ending" if any(batch.end for batch in batches) else "worker.appending"
    size = sum(batch.size for batch in batches)
    written = dict(fetch(APPEND, values, point=point, size=size))
    return [written.get(n) for n in range(len(batches))]


# --- runs -----------------------------------------------------------------------------------------

#: The first half of the advisory locks under which limited runs are counted; the second is the agent.
COUNTING = 0x0A2A
#: Maximum wait of a heartbeat for one row, in seconds.
LOCK_SECONDS = 0.3
#: Number of agents, and of runs of each, that a claim reads beyond those wanted: other claims may have locked the first.
SPARE = 20

# A task and its run are locked together or not at all: a cancellation holds the task and waits for its runs, so a claim
# must not wait for a task while it holds a run. Each row gets a token of its own.
# Waiting runs are read agent by agent: those of agents that are not wanted now are not read at all, however many wait.
# The recursion steps along an index from one agent to the next.
# An orphan is a run that was due for a while and not claimed, while no process that has its agent was seen.
# `statement_timestamp` can be searched by an index; `clock_timestamp` cannot.
# Rows are locked in the order of their turns, and no more than are claimed: another claim finds the others. They are
# looked up by an array: of a join the planner expects so many rows that it may read the whole table of tasks.
# It claims from one queue: for several queues at once PostgreSQL sorts all due runs, or searches all runs in the table.
# The fields in braces are filled in below (CLAIMS).
CLAIM = """
with recursive waiting(agent) as (
  select min(r.agent) from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and {quarantine}
  union all
  select (select min(r.agent) from a2a_tasks_run r
    where r.status = 'queued' and r.queue = %(queue)s and {quarantine} and r.agent > w.agent)
  from waiting w where w.agent is not null
), wanted as (
  select w.agent, w.agent = any(%(agents)s) as hosted from waiting w
  where w.agent = any(%(agents)s) or %(orphans)s and w.agent <> all(%(known)s)
    and (select r.due_at from a2a_tasks_run r where r.status = 'queued' and r.queue = %(queue)s and r.agent = w.agent
      and {quarantine} order by r.round, r.id limit 1) < clock_timestamp() - make_interval(secs => %(orphan)s)
    and not exists (select from a2a_tasks_worker o where o.seen_at > statement_timestamp() - make_interval(secs => %(unseen)s)
      and o.queues ? %(queue)s and o.agents ? w.agent)
), heads as (
  select w.*, d.* from wanted w cross join lateral (
    select r.{first} as first_place, r.id as first_id {waiting} order by r.{first}, r.id limit 1
  ) d order by first_place, first_id limit %(limit)s + %(spare)s
), candidates as (
  select d.id from heads w cross join lateral (
    select r.id {waiting} order by r.{first}, r.id limit 2 * %(limit)s + %(spare)s
  ) d
), due as (
  select r.id, r.task_id, r.round, r.due_at, r.input_number,
    %(mark)s || replace(gen_random_uuid()::text, '-', '') as token,
    t.state = any(%(ended)s) as ended, r.started_at is not null as begun_before,
    octet_length(t.memory) + octet_length(r.request) as size
  from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.id = any(array(select c.id from candidates c)) and r.status = 'queued' and r.round <= %(last_round)s
  order by r.{first}, r.id limit %(limit)s
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
  returning r.id, r.task_id, r.token, r.attempt, r.input_number, r.request, r.share, r.round, r.shared_deaths, r.longest_life,
    r.ordered_in, r.parked_in, r.said, d.begun_before
)
select r.id as run, r.token, r.attempt, t.id as task, t.tenant, t.owner, t.agent, t.public_id as task_id,
  c.public_id as context_id, t.state, t.is_task, t.last_event, r.input_number, m.body as input, r.request, t.memory,
  r.share, r.shared_deaths, r.longest_life, r.ordered_in is not null as ordered, r.parked_in, r.said, r.begun_before,
  (select array_agg(array[a.artifact_id, a.position::text, (a.body = '')::text] order by a.position)
   from a2a_tasks_artifact a where a.task_id = t.id) as artifacts
from run r join task t on t.id = r.task_id join a2a_tasks_context c on c.id = t.context_id
join a2a_tasks_message m on m.task_id = t.id and m.number = r.input_number
order by r.round, r.id
"""

#: Suspects are claimed separately. The number of deaths is part of the text, so that PostgreSQL can use the index
#: `run_suspect`. Runs that need a process of their own take turns: one that has just died waits behind the others.
QUARANTINES = {
    Quarantine.NONE: ("r.shared_deaths < 2", "round"),
    Quarantine.GROUP: ("r.shared_deaths = 2", "round"),
    Quarantine.PROCESS: ("r.shared_deaths >= 3", "due_at"),
}
#: The runs of agent `w` that may be claimed.
WAITING = """
    from a2a_tasks_run r
    where r.status = 'queued' and r.queue = %(queue)s and r.agent = w.agent and r.due_at <= clock_timestamp()
      and r.round <= %(last_round)s and r.share <> all(%(full)s) and {quarantine}
      and (w.hosted or r.due_at < clock_timestamp() - make_interval(secs => %(orphan)s))
      and not {behind}"""
CLAIMS = {
    quarantine: CLAIM.format(
        quarantine=deaths,
        first=first,
        waiting=WAITING.format(quarantine=deaths, behind=fair_queue.IS_BEHIND_ANOTHER),
    )
    for quarantine, (deaths, first) in QUARANTINES.items()
}


def claim_runs(wanted: WantedRuns, limit: int) -> list[ClaimedRun]:
    """See `interface.Backend`."""
    values = {
        "ended": sorted(TERMINAL),
        "agents": list(wanted.agents),
        "known": list(wanted.known),
        "orphans": wanted.orphans,
        "orphan": float(conf.ORPHAN_SECONDS),
        "unseen": workers.absence().total_seconds(),
        "worker": wanted.worker,
        "lease": wanted.lease_seconds,
        "carrying": wanted.carrying,
        "most": CLAIM_BYTES,
        "full": list(wanted.full),
        "mark": wanted.mark,
        "spare": SPARE,
    }
    requested_at = time.monotonic()
    queues, rows = wanted.queues, list[Any]()
    statement = CLAIMS[wanted.quarantine]
    with transaction.atomic() if len(queues) > 1 else contextlib.nullcontext():
        for queue in random.sample(queues, len(queues)):  # the first queue may fill the whole claim
            if (
                len(rows) < limit
                and (last := fair_queue.find_last_eligible_round(queue, wanted.full)) is not None
            ):
                now = {**values, "queue": queue, "last_round": last, "limit": limit - len(rows)}
                rows += fetch(statement, now, point="worker.claiming", rows=namedtuple_row)
    return [
        ClaimedRun(
            run=row.run,
            token=row.token,
            attempt=row.attempt,
            task=row.task,
            scope=OwnerScope(row.tenant, row.owner, row.agent),
            task_id=row.task_id,
            context_id=row.context_id,
            state=TaskState(row.state),
            is_task=row.is_task,
            last_event=row.last_event,
            input_number=row.input_number,
            input=row.input,
            request=row.request,
            memory=row.memory,
            share=row.share,
            quarantine=Quarantine.after(row.shared_deaths),
            longest_life=row.longest_life,
            begun_before=row.begun_before,
            ordered=row.ordered,
            parked_in=row.parked_in,
            said=row.said,
            artifacts=tuple(
                (artifact_id, int(position), growing == "true")
                for artifact_id, position, growing in row.artifacts or ()
            ),
            requested_at=requested_at,
        )
        for row in rows
    ]


def lock_agent(agent: str) -> None:
    """See `interface.Backend`."""
    fetch("select pg_advisory_xact_lock(%s, hashtext(%s))", [COUNTING, agent])


# Runs that another transaction has locked are skipped: to wait for them would delay all other leases.
EXTEND = """
with held as (
  select id from a2a_tasks_run where status = 'running' and token = any(%(tokens)b::text[]) order by id
  for update{skip}
)
update a2a_tasks_run r set lease_until = clock_timestamp() + make_interval(secs => lease_seconds), company = %(carrying)s
from held where r.id = held.id returning token
"""
HEARTBEAT, HEARTBEAT_LOCKED = EXTEND.format(skip=" skip locked"), EXTEND.format(skip="")


def extend_leases(tokens: Collection[str], carrying: int) -> set[str]:
    """See `interface.Backend`."""
    values = {"tokens": list(tokens), "carrying": carrying}
    return {token for (token,) in fetch(HEARTBEAT, values, point="worker.beating")}


def extend_locked_lease(token: str, carrying: int) -> bool:
    """See `interface.Backend`."""
    try:
        with transaction.atomic():
            milliseconds = str(int(LOCK_SECONDS * 1000))
            fetch("select set_config('lock_timeout', %s, true)", [milliseconds])
            return bool(fetch(HEARTBEAT_LOCKED, {"tokens": [token], "carrying": carrying}))
    except OperationalError as fault:
        if isinstance(fault.__cause__, LockNotAvailable):
            return False
        raise


# Rows that another transaction has locked are skipped: two transactions that wait for each other's rows would deadlock.
# A request with a trace gets the attempt as `note_attempt` would note it. Readers take the last of two equal members.
HAND_BACK = """
with held as (
  select r.id, r.task_id, r.token, r.queue from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id
  where r.status = 'running' and r.token = any(%(tokens)b::text[]) and t.run_token = r.token
  for update of r, t skip locked
), task as (
  update a2a_tasks_task t set run_token = '' from held h where t.id = h.task_id
)
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(),
  said = 0, parked_in = '', attempt = r.attempt - case when r.token = any(%(tried)b::text[]) then 0 else 1 end,
  error = r.error || case when r.token = any(%(tried)b::text[]) then
    'Attempt ' || r.attempt || ' on ' || r.worker || ' was stopped with its process.' || chr(10) else '' end,
  request = case when r.request ~ '"trace": ?[[]' then left(r.request, -1) || ',"before":["'
    || left(encode(sha256(convert_to(r.token, 'UTF8')), 'hex'), 16) || '",' || r.attempt || ']}' else r.request end,
  past = """
HAND_BACK += f"{write_end(HANDED_BACK)} from held h where r.id = h.id returning h.token, h.queue"


def hand_back_unlocked(tokens: Collection[str], tried: Collection[str]) -> list[tuple[str, str]]:
    """See `interface.Backend`."""
    rows = fetch(HAND_BACK, {"tokens": list(tokens), "tried": list(tried)})
    return [(token, queue) for token, queue in rows]


QUEUE_AGAIN = f"""
update a2a_tasks_run r set status = 'queued', token = '', lease_until = null, due_at = clock_timestamp(),
  said = 0, parked_in = '', error = d.error,
  deaths = d.deaths, shared_deaths = d.shared_deaths, died_at_event = d.died_at_event, furthest = d.furthest,
  longest_life = d.longest_life, request = d.request, past = {write_end(DIED)}
from unnest(%(pk)s::bigint[], %(error)b::text[], %(deaths)s::int[], %(shared_deaths)s::int[], %(died_at_event)s::int[],
  %(furthest)s::int[], %(longest_life)s::float8[], %(request)b::text[])
  as d(id, error, deaths, shared_deaths, died_at_event, furthest, longest_life, request)
where r.id = d.id returning r.id
"""  # noqa: S608 - constants of ours


def save_as_queued(runs: Sequence[Run]) -> None:
    """See `interface.Backend`."""
    counts = ("deaths", "shared_deaths", "died_at_event", "furthest", "longest_life")
    names = ("pk", "error", *counts, "request")
    fetch(QUEUE_AGAIN, {name: [getattr(run, name) for run in runs] for name in names})


# --- steps ----------------------------------------------------------------------------------------

# A transaction that waited for a row reads it again, so that it sees that a token was removed meanwhile. If a run keeps an
# equal result again, because the outcome of its first try was unknown, this succeeds.
KEEP_STEPS = """
with input as (
  select * from unnest(%(n)s::int[], %(task)s::bigint[], %(token)b::text[], %(input)s::int[], %(name)b::text[],
    %(result)b::text[], %(run)s::bigint[], %(seconds)s::float8[])
    as i(n, task, token, input, name, result, run, seconds)
), held as (
  select t.id, i.n from a2a_tasks_task t join input i on i.task = t.id
  where t.run_token = i.token and i.token <> '' order by t.id for update of t{skip}
), step as (
  insert into a2a_tasks_step (task_id, input_number, name, result, run, seconds)
  select h.id, i.input, i.name, i.result, i.run, i.seconds from held h join input i on i.n = h.n
  on conflict (task_id, input_number, name) do update set result = excluded.result
    where a2a_tasks_step.run = excluded.run and a2a_tasks_step.result = excluded.result
  returning task_id, name
)
select h.n, exists (select from step s join input i on (s.task_id, s.name) = (i.task, i.name) where i.n = h.n) from held h
"""
#: For one step, and for several: then tasks that another transaction has locked are skipped, and kept one by one.
KEEP, KEEP_UNLOCKED = KEEP_STEPS.format(skip=""), KEEP_STEPS.format(skip=" skip locked")


def keep_steps(steps: Sequence[StepResult]) -> set[int]:
    """See `interface.Backend`."""
    values = {
        "n": list(range(len(steps))),
        "task": [step.run.task for step in steps],
        "token": [step.run.token for step in steps],
        "input": [step.run.input_number for step in steps],
        "name": [step.name for step in steps],
        "result": [step.result for step in steps],
        "run": [step.run.run for step in steps],
        "seconds": [step.seconds for step in steps],
    }
    statement = KEEP if len(steps) == 1 else KEEP_UNLOCKED
    size = sum(len(step.result) for step in steps)
    rows = fetch(statement, values, point="worker.step_inside", size=size)
    if rows == [(0, False)] and len(steps) == 1:
        raise StepConflict
    return {n for n, is_kept in rows if is_kept}


# --- tasks ----------------------------------------------------------------------------------------

#: The fields of `StoredTask`, by their names.
TASK_COLUMNS = """t.id as key, t.public_id, t.last_event, c.public_id as context_id, t.state, t.status_at,
  t.status_message, t.metadata,
  (select array_agg(m.body order by m.number) from a2a_tasks_message m where m.task_id = t.id) as messages,
  (select array_agg(array[a.artifact_id, a.first_event::text, a.body] order by a.position)
   from a2a_tasks_artifact a where a.task_id = t.id) as artifacts"""
# `tenant || ''` prevents the planner from using the list indexes, which begin with the tenant. On a young table, without
# statistics, it rates them as equal to the unique index, and would read every task of the owner.
FIND = f"""
select i.n, {TASK_COLUMNS}
from unnest(%(n)s::int[], %(id)b::text[], %(agent)b::text[], %(owner)b::text[], %(tenant)b::text[],
  %(maker)b::text[]) as i(n, id, agent, owner, tenant, maker)
join a2a_tasks_task t
  on t.public_id = i.id and t.agent = i.agent and t.owner = i.owner and t.tenant || '' = i.tenant and t.is_task
  and (i.maker = '' or t.maker = i.maker)
join a2a_tasks_context c on c.id = t.context_id
"""  # noqa: S608 - a constant
FIND_BY_KEY = f"""
select {TASK_COLUMNS} from a2a_tasks_task t join a2a_tasks_context c on c.id = t.context_id where t.id = %s
"""  # noqa: S608 - a constant


def find_tasks(
    keys: Sequence[tuple[OwnerScope, str]],
) -> dict[tuple[OwnerScope, str], StoredTask]:
    """See `interface.Backend`."""
    lookups = [(scope, public_id, part) for scope, public_id in keys for part in scope.parts]
    keys_of_rows = [(scope, public_id) for scope, public_id, _ in lookups]
    columns = {
        "n": list(range(len(lookups))),
        "id": [public_id for _, public_id, _ in lookups],
        "agent": [scope.agent for scope, _, _ in lookups],
        "owner": [part.owner for _, _, part in lookups],
        "tenant": [scope.tenant for scope, _, _ in lookups],
        "maker": [part.created_by for _, _, part in lookups],
    }
    rows = fetch(FIND, columns, rows=namedtuple_row)
    # Of two tasks with one key the older one stays in the dictionary.
    newest_first = sorted(rows, key=lambda row: row.key, reverse=True)
    return {keys_of_rows[row.n]: _make_stored(row) for row in newest_first}


def find_task(task: int) -> StoredTask | None:
    """See `interface.Backend`."""
    rows = fetch(FIND_BY_KEY, [task], rows=namedtuple_row)
    return next(map(_make_stored, rows), None)


def _make_stored(row: Any) -> StoredTask:
    return StoredTask._make(getattr(row, name) for name in StoredTask._fields)


# --- events ---------------------------------------------------------------------------------------

#: With `limit`, each task is looked up by its key, also by a plan that was made when there were few.
OTHER_ENDS = """
select i.id, t.last_event from unnest(%s::bigint[], %s::int[]) as i(id, known)
left join lateral (select last_event from a2a_tasks_task where id = i.id limit 1) t on true
where t.last_event is distinct from i.known
"""


def find_other_ends(known: Mapping[int, int]) -> dict[int, int | None]:
    """See `interface.Backend`."""
    return dict(fetch(OTHER_ENDS, [list(known), list(known.values())]))


#: The events of a task after a number, up to a number of bytes. The server reads only the lengths of bodies beyond it.
READ_WITHIN = f"""
select number, kind, state, run, body from (
  select o.*, coalesce(sum(octet_length(o.body)) over (
    order by o.number rows between unbounded preceding and 1 preceding), 0) as before
  from ({READ_AFTER}) o(number, kind, state, run, body)
) e
where before < %s order by number
"""  # noqa: S608 - a constant


def read_events(task: int, number: int, limit: int, max_bytes: int) -> list[Recorded]:
    """See `interface.Backend`."""
    values = [task, number, limit, max_bytes]
    return list(map(make_recorded, fetch(READ_WITHIN, values, rows=namedtuple_row)))


READ_PAGES = f"""
select i.n, p.number, p.kind, p.state, p.run, p.body
from unnest(%(n)s::int[], %(task)s::bigint[], %(number)s::int[], %(which)s::int[]) as i(n, task, number, which)
cross join lateral (
  select o.*, sum(octet_length(o.body)) over (order by o.number) - octet_length(o.body) as before
  from (
    select e.number, e.kind, e.state, e.run,
      case when octet_length(e.body) > %(longest)s then '' else e.body end as body
    from a2a_tasks_event e
    where e.task_id = i.task and e.number > i.number and {is_wanted("i.which")}
    order by e.number limit %(limit)s
  ) o
) p
where p.before < %(most)s
order by i.n, p.number
"""  # noqa: S608 - constants of ours


def read_pages(
    pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
) -> list[list[Recorded]]:
    """See `interface.Backend`."""
    values = {
        "n": list(range(len(pages))),
        "task": [page.task for page in pages],
        "number": [page.number for page in pages],
        "which": [int(page.which) for page in pages],
        "limit": limit,
        "most": max_bytes,
        "longest": longest,
    }
    found: list[list[Recorded]] = [[] for _ in pages]
    for row in fetch(READ_PAGES, values, rows=namedtuple_row):
        found[row.n].append(make_recorded(row))
    return found


# --- clock, locks, audit, other tables ------------------------------------------------------------


def read_clock() -> float:
    """See `interface.Backend`."""
    ((now,),) = fetch("select extract(epoch from clock_timestamp())::float8", [])
    return float(now)


def find_call_news(recent: datetime.timedelta, after: int) -> list[call_news.Row]:
    """See `interface.Backend`."""
    return call_news.find(recent, after)


def shift_waits(seconds: float) -> None:
    """See `interface.Backend`. The clock is that of the server."""


def lock_number(number: int, *, wait: bool) -> bool:
    """See `interface.Backend`."""
    if wait:
        fetch("select pg_advisory_xact_lock(%s::bigint)", [number])
        return True
    ((locked,),) = fetch("select pg_try_advisory_xact_lock(%s::bigint)", [number])
    return bool(locked)


def read_snapshot(edge: str) -> int:
    """See `interface.Backend`."""
    ((found,),) = fetch(f"select pg_snapshot_{edge}(pg_current_snapshot())::text::bigint", [])
    return int(found)


@contextlib.contextmanager
def unlock_audit() -> Iterator[None]:
    """See `interface.Backend`."""
    fetch("select set_config('a2a.audit_unlocked', 'yes', true)", [])
    yield
    fetch("select set_config('a2a.audit_unlocked', 'no', true)", [])


def count_audit_triggers() -> int:
    """See `interface.Backend`."""
    ((found,),) = fetch(
        "select count(*) from pg_trigger "
        "where tgname ~ '^a2a_tasks_audit[a-z]+_(kept|truncate)$' and tgenabled = 'O'",
        [],
    )
    return int(found)


def limit_statements(seconds: float) -> None:
    """See `interface.Backend`."""
    fetch("select set_config('statement_timeout', %s, true)", [str(round(1000 * seconds))])


def update_rows(table: str, columns: Sequence[Any], values: list[list[Any]]) -> None:
    """See `interface.Backend`."""
    names = [column.column for column in columns]
    arrays = ", ".join(f"%s::{column.rel_db_type(connection)}[]" for column in columns)
    changes = ", ".join(f"{name} = given.{name}" for name in names[1:])
    given = f"unnest({arrays}) as given({', '.join(names)})"
    with connection.cursor() as cursor:
        cursor.execute(
            f"update {table} set {changes} from {given} where {table}.id = given.id",  # noqa: S608 - names of ours
            values,
        )


def filter_keys(statement: str, keys: list[int]) -> list[int]:
    """See `interface.Backend`."""
    return [key for (key,) in fetch(statement, [keys])]
