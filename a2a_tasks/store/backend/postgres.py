"""The store's statements for PostgreSQL: each does the work of many callers in one transaction.

The statements are in the folder `sql`. A statement does all its checks and writes at once, so that no other transaction comes between. Values are passed as
arrays, one for each column. Rows are locked in the order of their ids, and a task together with its run: two orders
would be a deadlock. See `interface` for the contract of each function, and docs/decisions/0002.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable
from psycopg.rows import namedtuple_row

from a2a_tasks.caller import OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.models import BEHIND
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, workers
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.backend.conversation_statements import change_conversations
from a2a_tasks.store.backend.statements import (
    LARGE,
    LARGE_READ,
    WANTED,
    empty_reopened,
    fetch,
    fetch_texts,
)
from a2a_tasks.store.quarantine import Quarantine
from a2a_tasks.store.records import (
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
from a2a_tasks.store.sql_files import read_sql

# --- new tasks ------------------------------------------------------------------------------------

#: The columns of new tasks: the name, and its type and value.
NEW_TASK: dict[str, tuple[str, Callable[[NewTask], Any]]] = {
    "tenant": ("text", lambda new: new.scope.tenant),
    "owner": ("text", lambda new: new.scope.owner),
    "created_by": ("text", lambda new: new.created_by),
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
    "quota_key": ("text", lambda new: new.quota_key),
    "request": ("text", lambda new: new.request),
    "request_id": ("text", lambda new: new.request_id),
    "actor": ("text", lambda new: new.actor),
    "detail": ("text", lambda new: audit.encode_detail(new.detail)),
    "ordered": ("bool", lambda new: new.ordered),
    "token": ("text", lambda new: new.lease.token if new.lease else ""),
    "worker": ("text", lambda new: new.lease.worker if new.lease else ""),
    "lease": ("float8", lambda new: new.lease.lease_seconds if new.lease else 0.0),
}


#: The columns of new tasks with places in chats.
PLACED_TASK: dict[str, tuple[str, Callable[[NewTask], Any]]] = NEW_TASK | {
    "asked": ("text", lambda new: new.place.asked if new.place else ""),
    "place": ("bigint", lambda new: new.place.row if new.place else 0),
    "before": ("text", lambda new: new.place.before if new.place else ""),
}


def _unnest(name: str, columns: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> str:
    """Return SQL that makes rows out of the arrays of these columns; `n` is the position of a row."""
    kinds = {"n": "int"} | {column: kind for column, (kind, _) in columns.items()}
    arrays = ", ".join(f"%({column})b::{kind}[]" for column, kind in kinds.items())
    return f"unnest({arrays}) as {name}({', '.join(kinds)})"


INSERT_TASKS = read_sql("insert_tasks", given=_unnest("i", NEW_TASK), behind=str(BEHIND))
INSERT_PLACED = read_sql("insert_placed_tasks", given=_unnest("i", PLACED_TASK), behind=str(BEHIND))


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


FIND_CHATS = read_sql("find_chats")
MOVE_CHATS = read_sql("move_chats")


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
        "created_by": [part.created_by for *_, part in lookups],
        "seconds": REPEAT_SECONDS,
    }
    found: list[list[FoundChat]] = [[] for _ in asked]
    for n, row, digest, task, context, state, number, recent in fetch(FIND_CHATS, values):
        found[n].append(FoundChat(row, digest, task, context, TaskState(state), number, recent))
    return found


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


APPEND_BATCHES = read_sql("append_batches", given=_unnest("b", BATCH))


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
    written = dict(fetch(APPEND_BATCHES, values, point=point, size=size))
    return [written.get(n) for n in range(len(batches))]


# --- runs -----------------------------------------------------------------------------------------

#: Maximum wait of a heartbeat for one row, in seconds.
LOCK_SECONDS = 0.3
#: Number of agents, and of runs of each, that a claim reads beyond those wanted: other claims may have locked the first.
SPARE = 20


#: Suspects are claimed separately. The number of deaths is part of the text, so that PostgreSQL can use the index
#: `run_suspect`. Runs that need a process of their own take turns: one that has just died waits behind the others.
QUARANTINES = {
    Quarantine.NONE: ("r.shared_deaths < 2", "round"),
    Quarantine.GROUP: ("r.shared_deaths = 2", "round"),
    Quarantine.PROCESS: ("r.shared_deaths >= 3", "due_at"),
}
CLAIMS = {
    quarantine: read_sql("claim_runs", quarantine=deaths, first=first)
    for quarantine, (deaths, first) in QUARANTINES.items()
}


#: The fields of a claimed run that are made out of columns; the others are columns.
MADE = {"scope", "state", "quarantine", "artifacts", "requested_at"}
CLAIMED = [field.name for field in fields(ClaimedRun) if field.name not in MADE]


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
        "runs_in_process": wanted.runs_in_process,
        "full": list(wanted.full),
        "mark": wanted.mark,
        "spare": SPARE,
        "small": LARGE,
    }
    requested_at = time.monotonic()
    queues, rows = wanted.queues, list[Any]()
    statement = CLAIMS[wanted.quarantine]
    with transaction.atomic() if len(queues) > 1 else contextlib.nullcontext():
        for queue in random.sample(queues, len(queues)):  # the first queue may fill the whole claim
            if (
                len(rows) < limit
                and (left := wanted.most - sum(row.bytes for row in rows)) > 0
                and (last := fair_queue.find_last_eligible_round(queue, wanted.full)) is not None
            ):
                now = {**values, "queue": queue, "last_round": last, "limit": limit - len(rows)}
                now["most"] = left
                rows += fetch(statement, now, point="worker.claiming", rows=namedtuple_row)
    return [_make_claimed(row, requested_at) for row in rows]


def _make_claimed(row: Any, requested_at: float) -> ClaimedRun:
    return ClaimedRun(
        **{name: getattr(row, name) for name in CLAIMED},
        scope=OwnerScope(row.tenant, row.owner, row.agent),
        state=TaskState(row.state),
        quarantine=Quarantine.after(row.shared_deaths),
        artifacts=tuple(
            (artifact_id, int(position), growing == "true")
            for artifact_id, position, growing in row.artifacts or ()
        ),
        requested_at=requested_at,
    )


#: The heartbeat skips runs that another transaction has locked: to wait for them would delay all other leases.
EXTEND_UNLOCKED = read_sql("extend_leases", skip=" skip locked")
EXTEND = read_sql("extend_leases", skip="")


def extend_leases(tokens: Collection[str], runs_in_process: int) -> set[str]:
    """See `interface.Backend`."""
    values = {"tokens": list(tokens), "runs_in_process": runs_in_process}
    return {token for (token,) in fetch(EXTEND_UNLOCKED, values, point="worker.beating")}


def extend_locked_lease(token: str, runs_in_process: int) -> bool:
    """See `interface.Backend`."""
    try:
        with transaction.atomic():
            milliseconds = str(int(LOCK_SECONDS * 1000))
            fetch("select set_config('lock_timeout', %s, true)", [milliseconds])
            return bool(fetch(EXTEND, {"tokens": [token], "runs_in_process": runs_in_process}))
    except OperationalError as fault:
        if isinstance(fault.__cause__, LockNotAvailable):
            return False
        raise


# --- steps ----------------------------------------------------------------------------------------

#: For one step, and for several: then tasks that another transaction has locked are skipped, and kept one by one.
KEEP_STEP = read_sql("keep_steps", skip="")
KEEP_UNLOCKED = read_sql("keep_steps", skip=" skip locked")


def keep_steps(steps: Sequence[StepResult]) -> set[int]:
    """See `interface.Backend`."""
    values = {
        "n": list(range(len(steps))),
        "task": [step.run.task for step in steps],
        "token": [step.run.token for step in steps],
        "input": [step.run.input_number for step in steps],
        "name": [step.name for step in steps],
        "result": [step.result for step in steps],
        "run": [step.run.key for step in steps],
        "seconds": [step.seconds for step in steps],
    }
    statement = KEEP_STEP if len(steps) == 1 else KEEP_UNLOCKED
    size = sum(len(step.result) for step in steps)
    rows = fetch(statement, values, point="worker.step_inside", size=size)
    if rows == [(0, False)] and len(steps) == 1:
        raise StepConflict
    return {n for n, is_kept in rows if is_kept}


READ_STEPS = read_sql("read_steps")


def read_steps(turns: Collection[tuple[int, int]]) -> list[tuple[int, int, str, str]]:
    """See `interface.Backend`."""
    tasks, numbers = [task for task, _ in turns], [number for _, number in turns]
    return [row[:4] for row in fetch_texts(READ_STEPS, {"task": tasks, "number": numbers})]


# --- tasks ----------------------------------------------------------------------------------------


FIND_TASKS = read_sql("find_tasks", artifact=f"{EventKind.ARTIFACT:d}")
FIND_TASK = read_sql("find_task", artifact=f"{EventKind.ARTIFACT:d}")


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
        "created_by": [part.created_by for _, _, part in lookups],
        "most": LARGE_READ,
    }
    rows = fetch(FIND_TASKS, columns, rows=namedtuple_row)
    # Of two tasks with one key the older one stays in the dictionary.
    newest_first = sorted(rows, key=lambda row: row.key, reverse=True)
    return {keys_of_rows[row.n]: _make_stored(row) for row in newest_first}


def find_task(task: int) -> StoredTask | None:
    """See `interface.Backend`."""
    rows = fetch_texts(FIND_TASK, {"task": task})
    return next(map(_make_stored, rows), None)


def _make_stored(row: Any) -> StoredTask:
    return StoredTask._make(getattr(row, name) for name in StoredTask._fields)


# --- events ---------------------------------------------------------------------------------------


FIND_OTHER_ENDS = read_sql("find_other_ends")
READ_EVENTS = read_sql("read_events")
READ_PAGES = read_sql("read_pages", which="i.which", **WANTED)


def find_other_ends(known: Mapping[int, int]) -> dict[int, int | None]:
    """See `interface.Backend`."""
    return dict(fetch(FIND_OTHER_ENDS, [list(known), list(known.values())]))


def read_events(task: int, number: int, limit: int, max_bytes: int) -> list[LogEvent]:
    """See `interface.Backend`."""
    values = {"task": task, "number": number, "limit": limit, "max_bytes": max_bytes}
    return list(map(make_recorded, fetch_texts(READ_EVENTS, values)))


def read_pages(
    pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
) -> list[list[LogEvent]]:
    """See `interface.Backend`."""
    values = {
        "n": list(range(len(pages))),
        "task": [page.task for page in pages],
        "number": [page.number for page in pages],
        "which": [int(page.which) for page in pages],
        "limit": limit,
        "max_bytes": max_bytes,
        "longest": longest,
    }
    found: list[list[LogEvent]] = [[] for _ in pages]
    for row in fetch_texts(READ_PAGES, values):
        found[row.n].append(make_recorded(row))
    return found
