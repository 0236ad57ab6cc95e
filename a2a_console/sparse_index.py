"""A sparse index of rare values, with which a list skips the pages of the table that do not contain them.

PostgreSQL stores the values of each small range of pages in a Bloom filter (BRIN). A change of a task costs almost
nothing, while ordinary indexes would be written at each change of state. Pages that have not been vacuumed since
they were written are not in the index, and are read. SQLite has no such index, and scans the primary key. The
migration of this app makes the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from django.db import connection, transaction

from a2a_tasks.store.backend.server import is_server

__all__ = ["BITMAPS", "plan", "use_index", "use_nothing_else"]


#: Settings of the planner that make steps along an index cheap, and those that leave it nothing but bitmaps.
CHEAP, BITMAPS = {"random_page_cost": "0.1"}, {"enable_seqscan": "off", "enable_indexscan": "off"}


def use_index() -> AbstractContextManager[None]:
    """Make the planner use the index for a value that is rare among many keys.

    By itself the planner takes unordered values for values on all pages, and would rather scan all keys.
    """
    return plan(CHEAP)


def use_nothing_else() -> AbstractContextManager[None]:
    """Make the planner find all rows of a name by the indexes of rare values, of whichever table (PostgreSQL).

    By itself it would read the whole table in the order of the key.
    """
    return plan(CHEAP | BITMAPS)


@contextmanager
def plan(settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of PostgreSQL's planner until the block ends, in a transaction."""
    if not is_server():
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("; ".join(f"set local {name} = {value}" for name, value in settings.items()))
        yield
        cursor.execute("; ".join(f"set local {name} to default" for name in settings))
