"""Bounded reads of tables of millions of rows: counts up to a bound, and the newest rows alone."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from a2a_console.search.key_ranges import last_key

__all__ = ["COUNTED", "NEWEST", "AtLeast", "count_bounded", "newest"]

_M = TypeVar("_M", bound=Model)

#: The largest number of rows that a list counts and pages through; filters lead to the rest.
COUNTED = 10_000
#: The number of newest rows that a filter without an index searches.
NEWEST = 100_000


class AtLeast(int):
    """A count that stopped at its bound; the admin shows it as `10000+`."""

    def __str__(self) -> str:
        return f"{int(self)}+"


def count_bounded(rows: QuerySet[Any]) -> int:
    """Count the rows, but at most COUNTED of them.

    The subquery keeps its order on purpose: without it the planner may scan the table from its old end and pass a
    million rows before the first match of a filter on new ones.
    """
    found = rows.values("pk")[: COUNTED + 1].count()
    return AtLeast(COUNTED) if found > COUNTED else found


def newest(rows: QuerySet[_M]) -> QuerySet[_M]:
    """Narrow to the newest NEWEST keys."""
    return rows.filter(pk__gt=last_key(rows) - NEWEST)
