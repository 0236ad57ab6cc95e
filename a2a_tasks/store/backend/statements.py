"""Statements in SQL on Django's connection; on PostgreSQL they are prepared, and their values are bound by the server.

Django's own cursor binds values on the client, so that PostgreSQL parses and plans these long statements every time;
see docs/decisions/0002. Behind a pool of transactions set A2A_PREPARE=0: then each statement has a transaction with
limits of its own (docs/decisions/0005).
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from operator import or_
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.models import BigIntegerField, Func, Q
from psycopg.rows import namedtuple_row, tuple_row
from psycopg.types.array import ListBinaryDumper

from a2a_tasks.conf import conf
from a2a_tasks.failpoints import ON, failpoint
from a2a_tasks.models import Artifact
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.backend.sessions import allow_bytes, limit_transaction
from a2a_tasks.store.records import Batch, WantedEvents

__all__ = [
    *("LARGE", "LARGE_READ", "WANTED", "Bytes", "allow_rows", "empty_reopened", "fetch"),
    *("fetch_texts", "number_values", "of_turns", "write_states"),
]


#: Bytes of values beyond which a statement gets more time.
LARGE = 1024 * 1024
#: Bytes of texts beyond which their read gets more time.
LARGE_READ = 2 * LARGE
VALUE = re.compile(r"%(?:\((\w+)\))?([sb%])")


class Binary(list[Any]):
    """Values of an array that go to the server as they are: no quote in a text is escaped for them."""


psycopg.adapters.register_dumper(Binary, ListBinaryDumper)


def write_states(states: Collection[str]) -> str:
    """Return the states as members of a list in SQL: the planner compares them with the conditions of indexes."""
    return ", ".join(f"'{TaskState(state).value}'" for state in sorted(states))


#: The fields of `sql/_is_wanted.sql`.
WANTED = {
    "all": f"{WantedEvents.ALL:d}",
    "states": f"{WantedEvents.STATES:d}",
    "status": f"{EventKind.STATUS:d}",
    "ends": write_states(TERMINAL | INTERRUPTED),
}


def of_turns(turns: Collection[tuple[int, int]]) -> Q:
    """Select the steps of turns, each a task and the number of a message, by their key: not those of other turns."""
    each = (Q(task_id=task, input_number=number) for task, number in turns)
    return functools.reduce(or_, each, Q(task_id__in=()))


def empty_reopened(batch: Batch) -> None:
    """Empty the folded artifacts that grow again; call it in the transaction that writes the batch."""
    reopened = Artifact.objects.filter(task_id=batch.task, position__in=batch.reopened)
    reopened.update(body="")


def fetch(
    sql: str,
    values: Mapping[Any, Any] | Sequence[Any],
    *,
    point: str = "",
    size: int = 0,
    rows: Any = tuple_row,
) -> list[Any]:
    """Return all rows of a statement. Raises django.db's errors.

    `point` is a failpoint before the commit, `size` the approximate number of bytes in the values or in the rows, if it may
    be large, and `rows` a row factory of psycopg.
    """
    if ON and point:
        with transaction.atomic():
            found = fetch(sql, values, size=size, rows=rows)
            failpoint(point)
            return found
    if size > LARGE and connection.connection is not None:
        with allow_bytes(size):
            return fetch(sql, values, rows=rows)
    if not conf.PREPARE and not connection.in_atomic_block:
        with transaction.atomic():
            return fetch(sql, values, rows=rows)
    connection.ensure_connection()
    limit_transaction()
    numbered, keys = number_values(sql)
    given = [Binary(values[key]) if binary else values[key] for key, binary in keys.items()]
    with (
        connection.wrap_database_errors,
        psycopg.RawCursor(connection.connection, row_factory=rows) as cursor,
    ):
        cursor.execute(numbered, given)
        return cursor.fetchall()


def fetch_texts(sql: str, values: Mapping[str, Any]) -> list[Any]:
    """Return all rows of a statement that reads texts. If they are large, they are read in a second one, with more time.

    The statement returns in each row the bytes of all texts, as `size`, but no text if they have more than `most` bytes.
    """
    rows = fetch(sql, {**values, "most": LARGE_READ}, rows=namedtuple_row)
    size = int(rows[0].size or 0) if rows else 0
    if size > LARGE_READ:
        return fetch(sql, {**values, "most": sys.maxsize}, size=size, rows=namedtuple_row)
    return rows


def allow_rows(size: int) -> contextlib.AbstractContextManager[None]:
    """Give statements that read so many bytes the time for them, in one transaction; usual ones get no transaction."""
    return allow_bytes(size) if size > LARGE_READ else contextlib.nullcontext()


@functools.lru_cache(maxsize=256)
def number_values(sql: str) -> tuple[str, dict[Any, bool]]:
    """Return a statement with $1 and so on for its values, and their names or positions in this order.

    With each stands whether it is a binary array (`%b`). psycopg would look for the values at each execution of a
    statement of more than 4,096 characters, which the statements of each send have.
    """
    keys: dict[Any, bool] = {}

    def number(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        key = found[1] or len(keys)
        keys.setdefault(key, found[2] == "b")
        return f"${list(keys).index(key) + 1}"

    return VALUE.sub(number, sql), keys


class Bytes(Func):
    """The number of bytes of a text; PostgreSQL finds it without reading the text."""

    function, output_field = "octet_length", BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        """Return the SQL for SQLite, which has the function only since 3.43."""
        template = "length(cast(%(expressions)s as blob))"
        return self.as_sql(compiler, connection, template=template, **more)
