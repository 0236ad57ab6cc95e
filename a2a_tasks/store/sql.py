"""The hot statements' way to PostgreSQL: Django's connection, but prepared and bound by the server.

Django's own cursor binds on the client, so that PostgreSQL parses and plans these long statements every time; see
docs/decisions/0002. Behind a pooler that cannot carry prepared statements set A2A_PREPARE=0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection, transaction

from a2a_tasks.conf import conf
from a2a_tasks.failpoints import ON, failpoint

__all__ = ["fetch"]


def fetch(
    sql: str, values: Mapping[str, Any] | Sequence[Any], *, point: str = ""
) -> list[tuple[Any, ...]]:
    """All rows of a statement. Raises django.db's errors. `point` is a failpoint before its commit."""
    if ON and point:
        with transaction.atomic():
            rows = fetch(sql, values)
            failpoint(point)
            return rows
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, values, prepare=bool(conf.PREPARE))
        return cursor.fetchall()
