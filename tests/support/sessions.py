"""Sessions of the tests' own PostgreSQL database: another run of the tests may use the same server at the same time."""

from __future__ import annotations

from django.db import connection

__all__ = ["WAITS_FOR_A_LOCK", "count_sessions"]

WAITS_FOR_A_LOCK = "wait_event_type = 'Lock'"


def count_sessions(condition: str) -> int:
    """Count the sessions of which the condition, in SQL, is true."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_stat_clear_snapshot()")  # a transaction would see the first one
        own = "select count(*) from pg_stat_activity where datname = current_database()"
        cursor.execute(f"{own} and {condition}")
        (found,) = cursor.fetchone()
    return int(found)
