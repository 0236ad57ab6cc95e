"""A sparse index of rare values, with which a list skips the pages of the table that do not contain them.

PostgreSQL stores the values of each small range of pages in a Bloom filter (BRIN). A change of a task costs almost
nothing, while ordinary indexes would be written at each change of state. Pages that have not been vacuumed since
they were written are not in the index, and are read. SQLite has no such index, and scans the primary key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from a2a_tasks.store.backend.interface import backend

__all__ = ["install", "remove", "use_index"]

_INDEX = "a2a_tasks_task_rare"
#: The expected number of different values in the pages of one entry; with more, pages are read in vain.
_VALUES = {"tenant": 20, "owner": 100, "maker": 50, "origin_dialect": 16, "origin_binding": 16}
_COLUMNS = ", ".join(
    f"{column} text_bloom_ops(n_distinct_per_range={number})" for column, number in _VALUES.items()
)
#: The number of pages of one entry: about five hundred tasks.
_PAGES = 16
_CREATE = f"create index {_INDEX} on a2a_tasks_task using brin ({_COLUMNS}) with (pages_per_range={_PAGES})"


def install(schema: Any) -> None:
    """Create the index on PostgreSQL."""
    if schema.connection.vendor == "postgresql":
        schema.execute(_CREATE)


def remove(schema: Any) -> None:
    """Drop the index."""
    if schema.connection.vendor == "postgresql":
        schema.execute(f"drop index if exists {_INDEX}")


@contextmanager
def use_index() -> Iterator[None]:
    """Make the planner use the index for a value that is rare among many keys.

    By itself the planner takes unordered values for values on all pages, and would rather scan all keys.
    """
    if not backend().has_word_index:
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set local random_page_cost = 0.1")
        yield
        cursor.execute("set local random_page_cost to default")
