"""Writing many rows at once, each with values of its own.

Django's `bulk_update` builds an expression for every value of every row, which takes longer than the database does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

__all__ = ["update_each"]


def update_each(rows: Sequence[Model], names: Sequence[str]) -> None:
    """Write these fields of these rows, all of one model. The rows are locked, or nobody else's."""
    if not rows:
        return
    meta = rows[0]._meta  # noqa: SLF001 - Django's documented interface
    fields: list[Any] = [meta.pk, *(meta.get_field(name) for name in names)]
    table = [[_value(field, row) for row in rows] for field in fields]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_from_arrays(meta.db_table, fields), table)
        else:
            cursor.executemany(
                _one_by_one(meta.db_table, fields),
                [(*row[1:], row[0]) for row in zip(*table, strict=True)],
            )


def _value(field: Any, row: Model) -> Any:
    return field.get_db_prep_save(getattr(row, field.attname), connection)


def _from_arrays(table: str, fields: Sequence[Any]) -> str:
    names = [field.column for field in fields]
    arrays = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    changes = ", ".join(f"{name} = given.{name}" for name in names[1:])
    given = f"unnest({arrays}) as given({', '.join(names)})"
    return f"update {table} set {changes} from {given} where {table}.id = given.id"  # noqa: S608 - names of ours


def _one_by_one(table: str, fields: Sequence[Any]) -> str:
    changes = ", ".join(f"{field.column} = %s" for field in fields[1:])
    return f"update {table} set {changes} where id = %s"  # noqa: S608
