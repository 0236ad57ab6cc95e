"""Triggers that refuse changes of the audit log. Retention and erasure bypass them with `unlock`.

They prevent mistakes, of this code and of people at the database's prompt. The seals show changes by a person who has
the right to drop the triggers (docs/decisions/0020).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from a2a_tasks.store.backend.interface import backend

__all__ = ["TABLES", "install", "are_installed", "remove", "unlock"]

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


def unlock() -> AbstractContextManager[None]:
    """Allow changes and deletions in the audit log within a transaction."""
    return backend().unlock_audit()


def install(schema: Any) -> None:
    """Create the triggers, with a migration's schema editor."""
    if schema.connection.vendor == "postgresql":
        schema.execute(FUNCTION)
    for table in TABLES:
        for made in _write_statements(schema.connection.vendor, table):
            schema.execute(made)


def _write_statements(vendor: str, table: str) -> list[str]:
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
    """Drop the triggers."""
    postgres = schema.connection.vendor == "postgresql"
    for table in TABLES:
        for name in ["kept", "truncate"] if postgres else ["update", "delete"]:
            on = f" on {table}" if postgres else ""
            schema.execute(f"drop trigger if exists {table}_{name}{on}")
    if postgres:
        schema.execute("drop function if exists a2a_audit_refuse()")


def are_installed() -> bool:
    """Return whether all triggers exist and are enabled."""
    return backend().count_audit_triggers() == 2 * len(TABLES)
