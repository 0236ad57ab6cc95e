"""The database at one moment, as plain values: what the checker holds against what clients saw.

Read by SQL of its own, past the host's code: what is checked must not help the checker. Moments are seconds since the
epoch, on the clock that all processes of a lab share.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import msgspec
import psycopg
from psycopg.rows import class_row

__all__ = [
    "ArtifactRow",
    "CallRow",
    "Dump",
    "EventRow",
    "KeyRow",
    "MessageRow",
    "RunRow",
    "StepRow",
    "TaskRow",
    "dump",
]


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `task` is the task's primary key."""


class TaskRow(_Row, frozen=True, kw_only=True):
    """A task; `id` is what clients call it."""

    task: int
    id: str
    agent: str
    state: str
    status_message: str = ""
    last_event: int
    run_token: str = ""
    created_at: float


class EventRow(_Row, frozen=True, kw_only=True):
    """One event of the log; `kind` is 1 input, 2 status, 3 artifact, 4 message."""

    task: int
    number: int
    kind: int
    state: str = ""
    run: int | None = None
    body: str = ""
    created_at: float


class RunRow(_Row, frozen=True, kw_only=True):
    """One run."""

    run: int
    task: int
    input_number: int
    status: str
    attempt: int
    token: str = ""
    error: str = ""
    created_at: float
    ended_at: float | None = None


class StepRow(_Row, frozen=True, kw_only=True):
    """The result of one durable step."""

    task: int
    input_number: int
    name: str
    result: str
    run: int
    created_at: float


class MessageRow(_Row, frozen=True, kw_only=True):
    """One message of a task's history, numbered as its event."""

    task: int
    number: int
    role: str
    body: str


class ArtifactRow(_Row, frozen=True, kw_only=True):
    """One artifact; `body` is empty while it grows."""

    task: int
    position: int
    artifact_id: str
    body: str


class KeyRow(_Row, frozen=True, kw_only=True):
    """A request that may come again; `key` is its Idempotency-Key."""

    key: str
    task: int
    number: int
    run: int


class CallRow(_Row, frozen=True, kw_only=True):
    """A call of an agent by another one; `task` is that of the callee."""

    task: int
    parent: int
    input_number: int
    name: str
    open: bool
    cancel: bool


@dataclass(frozen=True, slots=True)
class Dump:
    """All rows of a host, each table in the order of its keys."""

    tasks: tuple[TaskRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    runs: tuple[RunRow, ...] = ()
    steps: tuple[StepRow, ...] = ()
    messages: tuple[MessageRow, ...] = ()
    artifacts: tuple[ArtifactRow, ...] = ()
    keys: tuple[KeyRow, ...] = ()
    calls: tuple[CallRow, ...] = ()


TASKS = """
select id as task, public_id as id, agent, state, status_message, last_event, run_token,
  extract(epoch from created_at)::float8 as created_at
from a2a_tasks_task order by id
"""
EVENTS = """
select task_id as task, number, kind, state, run, body, extract(epoch from created_at)::float8 as created_at
from a2a_tasks_event order by task_id, number
"""
RUNS = """
select id as run, task_id as task, input_number, status, attempt, token, error,
  extract(epoch from created_at)::float8 as created_at, extract(epoch from ended_at)::float8 as ended_at
from a2a_tasks_run order by id
"""
STEPS = """
select task_id as task, input_number, name, result, run, extract(epoch from created_at)::float8 as created_at
from a2a_tasks_step order by task_id, input_number, name
"""
MESSAGES = (
    "select task_id as task, number, role, body from a2a_tasks_message order by task_id, number"
)
ARTIFACTS = """
select task_id as task, position, artifact_id, body from a2a_tasks_artifact order by task_id, position
"""
KEYS = """
select substr(name, 5) as key, task_id as task, number, run from a2a_tasks_idempotency
where name like 'key/%%' order by id
"""
CALLS = """
select child_id as task, parent_id as parent, input_number, name, open, cancel from a2a_tasks_delegation order by id
"""

R = TypeVar("R", bound=_Row)
_MOMENT = re.compile(r"extract\(epoch from (\w+)\)::float8")


def dump(database: str | Path, after: int = 0) -> Dump:
    """Everything of the tasks after that key, as it was at one moment.

    A path is an SQLite database. Raises psycopg.Error, sqlite3.Error.
    """
    if isinstance(database, Path):
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as file:
            file.execute("begin")
            return _read(lambda kind, sql: _sqlite_rows(file, kind, sql, after))
    with psycopg.connect(database) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return _read(lambda kind, sql: _rows(connection, kind, sql, after))


def _read(rows: Callable[[Any, LiteralString], Any]) -> Dump:
    return Dump(
        tasks=rows(TaskRow, TASKS),
        events=rows(EventRow, EVENTS),
        runs=rows(RunRow, RUNS),
        steps=rows(StepRow, STEPS),
        messages=rows(MessageRow, MESSAGES),
        artifacts=rows(ArtifactRow, ARTIFACTS),
        keys=rows(KeyRow, KEYS),
        calls=rows(CallRow, CALLS),
    )


def _rows(
    connection: psycopg.Connection[Any], kind: type[R], sql: LiteralString, after: int
) -> tuple[R, ...]:
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return tuple(cursor.execute(f"select * from ({sql}) all_ where task > %s", [after]))


def _sqlite_rows(
    connection: sqlite3.Connection, kind: type[R], sql: str, after: int
) -> tuple[R, ...]:
    """The same rows by SQLite: its moments are texts."""
    sql = _MOMENT.sub(r"(julianday(\1) - 2440587.5) * 86400.0", sql).replace("%%", "%")
    found = connection.execute(f"select * from ({sql}) all_ where task > ?", [after])
    names = [column[0] for column in found.description]
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in found)
