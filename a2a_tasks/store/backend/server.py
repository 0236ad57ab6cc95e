"""The clock, locks by numbers, snapshots, rights and limits of statements, which a server has and SQLite has not.

SQLite has the clock of its host and one writer. Except for migrations, code outside of `store/backend` knows little more
about the kind of database than `is_server`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.sql_files import read_sql

__all__ = [
    *("count_audit_triggers", "is_server", "limit_statements", "lock_number", "may_write"),
    *("read_clock", "read_snapshot", "unlock_audit"),
]

MAY_WRITE = read_sql("may_write")
UNLOCK = "select set_config('a2a.audit_unlocked', %s, true)"
_unlocked: ContextVar[bool] = ContextVar("audit_unlocked", default=False)


def is_server() -> bool:
    """Return whether the database is a server, which is PostgreSQL."""
    return connection.vendor == "postgresql"


def read_clock() -> float:
    """Return seconds since the epoch, by the clock shared by all processes."""
    if not is_server():
        return time.time()
    return float(_read("select extract(epoch from clock_timestamp())::float8"))


def lock_number(number: int, *, wait: bool) -> bool:
    """Take the lock with this number until the transaction ends. False: another transaction has it."""
    if not is_server():
        return True
    if wait:
        _read("select pg_advisory_xact_lock(%s::bigint)", number)
        return True
    return bool(_read("select pg_try_advisory_xact_lock(%s::bigint)", number))


def read_snapshot(edge: str) -> int:
    """Return the oldest transaction under way ("xmin"), or the next one to begin ("xmax"); 0 = there is no other one."""
    if not is_server():
        return 0
    return int(_read(f"select pg_snapshot_{edge}(pg_current_snapshot())::text::bigint"))


def may_write() -> bool:
    """Return whether the host's role may add rows to all tables, and change those outside of the audit log."""
    return not is_server() or bool(_read(MAY_WRITE))


def limit_statements(seconds: float) -> None:
    """Limit each statement of the open transaction to this time, if the database supports it."""
    if is_server():
        _read("select set_config('statement_timeout', %s, true)", str(round(1000 * seconds)))


@contextlib.contextmanager
def unlock_audit() -> Iterator[None]:
    """Allow changes and deletions in the audit log within a transaction."""
    if is_server():
        _read(UNLOCK, "yes")
        yield
        _read(UNLOCK, "no")
        return
    token = _unlocked.set(True)
    try:
        yield
    finally:
        _unlocked.reset(token)


@receiver(connection_created)
def _add_audit_function(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give each connection to SQLite the function that the triggers of the audit log call."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("a2a_audit_unlocked", 0, _unlocked.get)


def count_audit_triggers() -> int:
    """Return the number of enabled triggers of the audit log."""
    with connection.cursor() as cursor:
        cursor.execute(read_sql(f"count_audit_triggers_{connection.vendor}"))
        return int(cursor.fetchone()[0])


def _read(sql: str, *values: Any) -> Any:
    """Return the value of a statement that has one."""
    ((value,),) = fetch(sql, values)
    return value
