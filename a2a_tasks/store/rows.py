"""Updates of many rows in one statement, each with values of its own.

Django's `bulk_update` builds an expression for every value of every row, which takes longer than the statement itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Model

from a2a_tasks.store.backend.interface import backend

__all__ = ["update_each"]


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
    backend().update_rows(meta.db_table, fields, table)
