"""A sparse index of rare values, with which a list skips the pages of the table that do not contain them.

PostgreSQL stores the values of each small range of pages in a Bloom filter (BRIN). A change of a task costs almost
nothing, while ordinary indexes would be written at each change of state. Pages that have not been vacuumed since
they were written are not in the index, and are read. SQLite has no such index, and scans the primary key. The
migration of this app makes the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from a2a_tasks.store.backend.interface import backend

__all__ = ["use_index", "use_nothing_else"]


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


@contextmanager
def use_nothing_else() -> Iterator[None]:
    """Make the planner find all rows of a name by the indexes of rare values, of whichever table (PostgreSQL).

    By itself it would read the whole table in the order of the key.
    """
    with use_index():
        if backend().has_word_index:
            with connection.cursor() as cursor:
                cursor.execute("set local enable_seqscan = off; set local enable_indexscan = off")
        yield
        if backend().has_word_index:
            with connection.cursor() as cursor:
                cursor.execute(
                    "set local enable_seqscan to default; set local enable_indexscan to default"
                )
