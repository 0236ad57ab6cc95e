"""Updates of many rows in one statement, each with values of its own, and a look at many keys in one.

Django's `bulk_update` builds an expression for every value of every row, which takes longer than the statement itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

from a2a_tasks.store.backend.server import is_server
from a2a_tasks.store.backend.statements import fetch

__all__ = ["filter_keys", "update_each", "update_rows"]


def update_each(rows: Sequence[Model], names: Sequence[str]) -> None:
    """Write these fields of these rows, all of one model. The caller has locked the rows, or has created them."""
    if not rows:
        return
    meta = rows[0]._meta  # noqa: SLF001 - Django's documented interface
    fields: list[Any] = [meta.pk, *(meta.get_field(name) for name in names)]
    table = [
        [field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows]
        for field in fields
    ]
    update_rows(meta.db_table, fields, table)


def update_rows(
    table: str, columns: Sequence[Any], values: list[list[Any]], *, keys: int = 1
) -> None:
    """Write values, one list for each column, into the rows whose keys are in the first `keys` lists."""
    names = [column.column for column in columns]
    if is_server():
        arrays = ", ".join(f"%b::{column.rel_db_type(connection)}[]" for column in columns)
        changes = ", ".join(f"{name} = given.{name}" for name in names[keys:])
        same = " and ".join(f"{table}.{name} = given.{name}" for name in names[:keys])
        given = f"unnest({arrays}) as given({', '.join(names)})"
        fetch(f"update {table} set {changes} from {given} where {same} returning 1", values)  # noqa: S608 - names of ours
        return
    changes = ", ".join(f"{name} = %s" for name in names[keys:])
    same = " and ".join(f"{name} = %s" for name in names[:keys])
    rows = [(*row[keys:], *row[:keys]) for row in zip(*values, strict=True)]
    with connection.cursor() as cursor:
        cursor.executemany(f"update {table} set {changes} where {same}", rows)  # noqa: S608 - names of ours


def filter_keys(statement: str, keys: list[int]) -> list[int]:
    """Return those of the keys that a statement of PostgreSQL selects; other databases return all of them."""
    return [key for (key,) in fetch(statement, [keys])] if is_server() else keys
