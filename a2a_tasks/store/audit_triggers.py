"""What keeps rows of the audit log as they are: triggers, and the one way past them, for retention and erasure.

They are against mistakes, of ours and of whoever is at the database's prompt. Whoever may drop them is found by the
seals (decision 112).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

__all__ = ["TABLES", "install", "installed", "remove", "renew", "unlocked"]

TABLES = ("a2a_tasks_auditentry", "a2a_tasks_auditlink", "a2a_tasks_auditseal")
REFUSAL = "the audit log is append-only"

FUNCTION = f"""
create or replace function a2a_audit_refuse() returns trigger language plpgsql as $$
begin
  if current_setting('a2a.audit_unlocked', true) = 'yes' then
    if tg_op = 'DELETE' then return old; end if;
    return new;
  end if;
  raise exception '{REFUSAL}';
end $$
"""

_unlocked: ContextVar[bool] = ContextVar("a2a_audit_unlocked", default=False)


@contextmanager
def unlocked() -> Iterator[None]:
    """Let rows of the log be changed and deleted, inside a transaction."""
    token = _unlocked.set(True)
    try:
        _say("yes")
        yield
        _say("no")
    finally:
        _unlocked.reset(token)


def _say(word: str) -> None:
    """On PostgreSQL, to this transaction alone. SQLite asks this process, by the function below."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("select set_config('a2a.audit_unlocked', %s, true)", [word])


@receiver(connection_created)
def _teach(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a connection to SQLite what the triggers ask. One that never learned it changes nothing."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("a2a_audit_unlocked", 0, _unlocked.get)


def install(schema: Any) -> None:
    """Make the triggers, by a migration's schema editor."""
    if schema.connection.vendor == "postgresql":
        schema.execute(FUNCTION)
    for table in TABLES:
        for made in _made(schema.connection.vendor, table):
            schema.execute(made)


def _made(vendor: str, table: str) -> list[str]:
    if vendor == "postgresql":
        return [
            f"create trigger {table}_kept before update or delete on {table} "
            "for each row execute function a2a_audit_refuse()",
            f"create trigger {table}_truncate before truncate on {table} "
            "for each statement execute function a2a_audit_refuse()",
        ]
    return [
        f"create trigger {table}_{verb} before {verb} on {table} when not a2a_audit_unlocked() "
        f"begin select raise(abort, '{REFUSAL}'); end"
        for verb in ("update", "delete")
    ]


def remove(schema: Any) -> None:
    """Take the triggers away again."""
    postgres = schema.connection.vendor == "postgresql"
    for table in TABLES:
        for name in ["kept", "truncate"] if postgres else ["update", "delete"]:
            on = f" on {table}" if postgres else ""
            schema.execute(f"drop trigger if exists {table}_{name}{on}")
    if postgres:
        schema.execute("drop function if exists a2a_audit_refuse()")


def renew(schema: Any) -> None:
    """Make all of them that there should be now, by a migration's schema editor; some are there."""
    remove(schema)
    install(schema)


def installed() -> bool:
    """Are all the triggers there, and switched on?"""
    if connection.vendor == "postgresql":
        ask = "select count(*) from pg_trigger where tgname ~ '^a2a_tasks_audit[a-z]+_(kept|truncate)$' and tgenabled = 'O'"
    else:
        ask = "select count(*) from sqlite_master where type = 'trigger' and tbl_name like 'a2a_tasks_audit%%'"
    with connection.cursor() as cursor:
        cursor.execute(ask, [])
        found: int = cursor.fetchone()[0]
    return found == 2 * len(TABLES)
