"""Entries of the audit log: each is written in the transaction of its action, so that neither exists without the other.

    with transaction.atomic():
        ...                                       # the change
        audit.note(Action.KEY_REVOKE, prefix)     # by the current actor: see audit/actor.py

An entry is chained a moment later (`audit_seals`), so that transactions do not wait for each other's entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from a2a_tasks.audit import Action
from a2a_tasks.audit.actor import actor as acting_now
from a2a_tasks.audit.actor import request_id
from a2a_tasks.caller import OwnerScope
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store.sql_files import read_sql

__all__ = ["DONE", "REFUSED", "encode_detail", "note", "note_each"]

DONE, REFUSED = "done", "refused"
#: Actions whose outcome is a refusal.
REFUSALS = frozenset(
    {Action.LOGIN_FAILED, Action.ACCESS_REFUSED, Action.ACCESS_DENIED, Action.ANNOUNCEMENT_REFUSED}
)
INSERT = read_sql("insert_audit_entry")
#: Maximum number of characters of a text in the detail; names are shorter.
MAX_LENGTH = 200


def note(
    action: Action,
    object: str = "",  # noqa: A002 - it is the object of the action
    *,
    scope: OwnerScope | None = None,
    tenant: str = "",
    actor: str | None = None,
    request: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write one entry in the open transaction.

    Tenant and agent are the scope's. The default of `actor` is the current actor (audit/actor.py). The detail is for a
    few names and numbers, not for content or secrets; long texts are cut.
    """
    if scope is None:
        scope = OwnerScope(tenant, "", "")
    who = acting_now() if actor is None else actor
    by_request = request_id() if request is None else request
    _insert([_row(action, scope, object, who, by_request, encode_detail(detail))])


def note_each(action: Action, objects: Iterable[tuple[OwnerScope, str]]) -> None:
    """Write one entry for each object, by the current actor."""
    who, request = acting_now(), request_id()
    _insert([_row(action, scope, name, who, request) for scope, name in objects])


def _row(
    action: Action, scope: OwnerScope, name: str, actor: str, request: str, detail: str = ""
) -> list[str]:
    outcome = REFUSED if action in REFUSALS else DONE
    return [scope.tenant, scope.agent, actor, action.value, name, outcome, detail, request]


def _insert(rows: list[list[str]]) -> None:
    """Insert rows by SQL: the ORM takes five times as long, for every message on SQLite (decision 2)."""
    with connection.cursor() as cursor:
        cursor.executemany(INSERT, rows)


def encode_detail(detail: Mapping[str, Any] | None) -> str:
    """Return the detail as an entry has it."""
    if not detail:
        return ""
    cut = {
        key: value[:MAX_LENGTH] if isinstance(value, str) else value
        for key, value in detail.items()
    }
    return write(cut).decode()
