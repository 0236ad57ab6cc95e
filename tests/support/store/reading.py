"""What PostgreSQL has looked at."""

from __future__ import annotations

from django.db import connection

__all__ = ["count_rows"]

LOOKED_AT = """
select sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))
from pg_class where relkind = any(%s) and relnamespace = 'public'::regnamespace
"""


def count_rows(*, entries: bool = False) -> int:
    """The rows that this transaction has looked at, with `entries` also those of indexes.

    Those of indexes include what tests before have rolled back, until the table is vacuumed.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOOKED_AT, [["r", "t", "i"] if entries else ["r", "t"]])
        return int(cursor.fetchone()[0])
