"""Fill a target's store with completed tasks, by SQL inside PostgreSQL.

Every target has answered one `echo hi` before; the rows added here are copies of that task's under new ids, each a
millisecond younger than the one before it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import psycopg

from lab.bench.targets import Target

BATCH = 50_000
STAMP = "timestamp '2025-01-01' + i * interval '1 millisecond'"
NUMBERS = "generate_series({first}, {last}) i"
Connection = psycopg.Connection[tuple[int, ...]]
Insert = Callable[[Connection, int, int], None]

_STATUS = f"""json_build_object('state', 'TASK_STATE_COMPLETED',
    'timestamp', to_char({STAMP}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))"""


def _columns(connection: Connection, table: str) -> list[str]:
    query = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped"
    return [str(row[0]) for row in connection.execute(query, [table])]


def _copy(
    connection: Connection, table: str, like_it: str, first: int, last: int, new: dict[str, str]
) -> None:
    """Insert rows like those of the query `like_it`, numbered i, with the expressions of `new` in their columns."""
    columns = _columns(connection, table)
    values = ", ".join(new.get(name, f"like_it.{name}") for name in columns)
    statement = (
        f"insert into {table} ({', '.join(columns)}) select {values}"
        f" from {NUMBERS.format(first=first, last=last)}, ({like_it}) like_it"
    )
    connection.execute(statement.encode())


def insert_a2a_sdk(connection: Connection, first: int, last: int) -> None:
    """Rows of a2a-sdk's DatabaseTaskStore."""
    new = {
        "id": "gen_random_uuid()",
        "context_id": "gen_random_uuid()",
        "last_updated": STAMP,
        "status": _STATUS,
    }
    _copy(connection, "tasks", "select * from tasks limit 1", first, last, new)


def insert_a2a_js(connection: Connection, first: int, last: int) -> None:
    """Rows of @a2a-js/sdk's DatabaseTaskStore."""
    new = {"id": "gen_random_uuid()", "context_id": "gen_random_uuid()", "status": _STATUS}
    new["status_last_updated"] = f"(extract(epoch from {STAMP}) * 1000)::bigint"
    _copy(connection, "tasks", "select * from tasks limit 1", first, last, new)


def insert_ours(connection: Connection, first: int, last: int) -> None:
    """A context, a task, its messages, artifacts, events and runs each."""
    like_it, context = connection.execute(
        "select id, context_id from a2a_tasks_task where state = 'TASK_STATE_COMPLETED' order by id limit 1"
    ).fetchone() or (0, 0)
    task, created = (
        f"{_highest(connection, 'task')} + i - {first - 1}",
        {"created_at": f"({STAMP}) at time zone 'utc'"},
    )
    contexts = f"{_highest(connection, 'context')} + i - {first - 1}"
    ids = {
        "public_id": "gen_random_uuid()",
        "updated_at": created["created_at"],
        "status_at": created["created_at"],
    }

    def copy(name: str, condition: str, **new: str) -> None:
        query = f"select * from a2a_tasks_{name} where {condition}"
        _copy(connection, f"a2a_tasks_{name}", query, first, last, created | ids | new)

    copy("context", f"id = {context}", id=contexts)
    copy("task", f"id = {like_it}", id=task, context_id=contexts)
    for name in ("message", "artifact", "event"):
        copy(name, f"task_id = {like_it}", task_id=task)
    runs = "nextval(pg_get_serial_sequence('a2a_tasks_run', 'id'))"
    copy("run", f"task_id = {like_it}", id=runs, task_id=task)
    for name in ("context", "task"):
        connection.execute(
            f"select setval(pg_get_serial_sequence('a2a_tasks_{name}', 'id'), {_highest(connection, name)})".encode()
        )


def _highest(connection: Connection, name: str) -> int:
    row = connection.execute(
        f"select coalesce(max(id), 0) from a2a_tasks_{name}".encode()
    ).fetchone()
    return row[0] if row else 0


#: target → (its table of tasks, what adds rows)
STORES: dict[str, tuple[str, Insert]] = {
    "a2a-pg": ("tasks", insert_a2a_sdk),
    "js-pg": ("tasks", insert_a2a_js),
    "ours-local": ("a2a_tasks_task", insert_ours),
    "ours-celery": ("a2a_tasks_task", insert_ours),
}


def fill(target: Target, size: int) -> None:
    """Add completed tasks until the store holds `size` of them."""
    table, insert = STORES[target.name]
    with psycopg.connect(target.database, autocommit=True) as connection:
        have = _count(connection, table)
        if have > size:
            raise RuntimeError(f"{target.name} holds {have} tasks already, more than {size}")
        for first in range(have + 1, size + 1, BATCH):
            last = min(first + BATCH - 1, size)
            with connection.transaction():
                insert(connection, first, last)
            _progress(target.name, last, size)
        connection.execute("vacuum analyze")


def count_stored(target: Target) -> int:
    """Return the number of tasks in the store."""
    with psycopg.connect(target.database, autocommit=True) as connection:
        return _count(connection, STORES[target.name][0])


def _count(connection: Connection, table: str) -> int:
    row = connection.execute(f"select count(*) from {table}".encode()).fetchone()
    return row[0] if row else 0


def _progress(name: str, done: int, size: int) -> None:
    bar = "#" * (30 * done // size)
    end = "\n" if done == size else ""
    print(
        f"\r  filling {name}: [{bar:<30}] {done:,} of {size:,} ",
        end=end,
        file=sys.stderr,
        flush=True,
    )
