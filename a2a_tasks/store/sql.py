"""The hot statements' way to PostgreSQL: Django's connection, but prepared and bound by the server.

Django's own cursor binds on the client, so that PostgreSQL parses and plans these long statements every time; see
docs/decisions/0002. Behind a pooler that cannot carry prepared statements set A2A_PREPARE=0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection

from a2a_tasks.conf import conf

__all__ = ["fetch", "fetch_one"]


def _execute(sql: str, values: Mapping[str, Any] | Sequence[Any], *, one: bool) -> Any:
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, values, prepare=bool(conf.PREPARE))  # type: ignore[arg-type]
        return cursor.fetchone() if one else cursor.fetchall()


def fetch(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """All rows of a statement. Raises django.db's errors."""
    rows: list[tuple[Any, ...]] = _execute(sql, values, one=False)
    return rows


def fetch_one(sql: str, values: Mapping[str, Any] | Sequence[Any]) -> tuple[Any, ...] | None:
    """The first row, or None. Raises django.db's errors."""
    row: tuple[Any, ...] | None = _execute(sql, values, one=True)
    return row
