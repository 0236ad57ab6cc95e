"""Where in the table rare values are: an index that lets a list look for them without reading what lies between.

PostgreSQL keeps, for each few pages of the table, which values there are (a Bloom filter). So it costs a change of a
task next to nothing, where an entry in an index each would be paid at each state. Pages that have not been vacuumed
since they were written are not in it, and are read. SQLite has none, and reads along the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

__all__ = ["install", "remove", "sought"]

_INDEX = "a2a_tasks_task_rare"
#: Of as many different values in the pages of one entry; where there are more, more is read than is needed.
_VALUES = {"tenant": 20, "owner": 100, "maker": 50, "origin_dialect": 16, "origin_binding": 16}
_COLUMNS = ", ".join(
    f"{column} text_bloom_ops(n_distinct_per_range={number})" for column, number in _VALUES.items()
)
#: Pages of one entry: some five hundred tasks.
_PAGES = 16
_CREATE = f"create index concurrently {_INDEX} on a2a_tasks_task using brin ({_COLUMNS}) with (pages_per_range={_PAGES})"


def install(schema: Any) -> None:
    """Make the index, where there is one, while tasks are written; not in a transaction."""
    if schema.connection.vendor == "postgresql":
        remove(schema)  # what is left of one that was not made to its end
        schema.execute(_CREATE)


def remove(schema: Any) -> None:
    """Take it away."""
    if schema.connection.vendor == "postgresql":
        schema.execute(f"drop index concurrently if exists {_INDEX}")


@contextmanager
def sought() -> Iterator[None]:
    """Have the planner take the index for what is rare in many keys.

    It takes values that are in no order for ones that are everywhere, a few pages for thousands, and would rather pass all the keys.
    """
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("set local random_page_cost = 0.1")
        yield
        cursor.execute("set local random_page_cost to default")
