"""The hot statements' way to PostgreSQL: Django's connection, but bound by the server, and prepared in the store's sessions.

Django's own cursor binds on the client, so that PostgreSQL parses and plans these long statements every time; see
docs/decisions/0002 and 0179. Behind a pool of transactions set A2A_PREPARE=0: each statement then has a transaction with limits of
its own (docs/decisions/0174).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection, transaction
from django.db.models import BigIntegerField, Func

from a2a_tasks.conf import conf
from a2a_tasks.failpoints import ON, failpoint
from a2a_tasks.store.deadline import allowing, limit_transaction

__all__ = ["LARGE", "Bytes", "fetch"]


#: Bytes of values beyond which a statement gets more time.
LARGE = 1024 * 1024


def fetch(
    sql: str, values: Mapping[str, Any] | Sequence[Any], *, point: str = "", size: int = 0
) -> list[tuple[Any, ...]]:
    """All rows of a statement. Raises django.db's errors. `point` is a failpoint before its commit.

    `size` is roughly how many bytes the values have, where that may be many.
    """
    if ON and point:
        with transaction.atomic():
            rows = fetch(sql, values, size=size)
            failpoint(point)
            return rows
    if size > LARGE and connection.connection is not None:
        with allowing(size):
            return fetch(sql, values)
    if not conf.PREPARE and not connection.in_atomic_block:
        with transaction.atomic():
            return fetch(sql, values)
    connection.ensure_connection()
    limit_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


class Bytes(Func):
    """How many bytes a text has, without reading it where the database can."""

    function, output_field = "octet_length", BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        """SQLite has had the function since 3.43."""
        template = "length(cast(%(expressions)s as blob))"
        return self.as_sql(compiler, connection, template=template, **more)
