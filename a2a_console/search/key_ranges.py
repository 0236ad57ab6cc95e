"""Ranges of primary keys for spans of time: keys are in the order of time, so no index on moments is needed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

__all__ = ["BRACKET", "SLACK", "find_next", "find_span", "last_key", "split"]

#: The number of keys at which the bisection of `split` stops.
BRACKET = 1_000
#: The largest difference between both orders: a transaction stamps its rows when it begins and gets keys later.
SLACK = timedelta(minutes=5)


def split(rows: QuerySet[Any], moment: datetime) -> tuple[int, int]:
    """Find the keys between which `created_at` passes the moment: all up to `low` are older, all after `high` newer.

    There is no index on `created_at`, and none is needed: a bisection takes a few lookups by key.
    """
    low, high = 0, last_key(rows)
    while high - low > BRACKET:
        middle = (low + high) // 2
        after = rows.filter(pk__gt=middle).order_by("pk").values_list("pk", "created_at").first()
        if after is None or after[1] >= moment:
            high = middle
        else:
            low = after[0]
    return low, high


def last_key(rows: QuerySet[Any]) -> int:
    """Return the newest key; 0 if there is none."""
    return rows.order_by("-pk").values_list("pk", flat=True).first() or 0


def find_span(
    rows: QuerySet[Any], after: datetime | None, before: datetime | None
) -> tuple[int, int]:
    """Return two keys: rows created at or after one moment and before the other come after the first and up to the second."""
    low, high = 0, last_key(rows)
    if after:
        low, _ = split(rows, after - SLACK)
    if before:
        high = min(high, split(rows, before + SLACK)[1])
    return low, high


def find_next(rows: QuerySet[Any], low: int, floor: int) -> int | None:
    """Return the key before which a page of older rows begins, beyond a gap that retention may have left.

    None if there are no rows after `low` and up to `floor`.
    """
    key = last_key(rows.filter(pk__gt=low, pk__lte=floor)) if floor > low else 0
    return key + 1 if key else None
