"""What PostgreSQL has looked at."""

from __future__ import annotations

from django.db import connection

__all__ = ["count_rows"]

#: The rows and index entries that PostgreSQL looked at in this transaction.
LOOKED_AT = """
select sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))
from pg_class where relkind in ('r', 'i', 't') and relnamespace = 'public'::regnamespace
"""


def count_rows() -> int:
    """The rows and index entries that this transaction has looked at."""
    with connection.cursor() as cursor:
        cursor.execute(LOOKED_AT)
        return int(cursor.fetchone()[0])
