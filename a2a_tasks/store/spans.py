"""From moments to keys: keys are given in the order of time, so that no index on a moment is needed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

__all__ = ["BRACKET", "SLACK", "last_key", "split"]

#: `split` is content with a bracket of this many keys.
BRACKET = 1_000
#: A transaction stamps its rows when it begins and gets keys later: the two orders differ by so much at most.
SLACK = timedelta(minutes=5)


def split(rows: QuerySet[Any], moment: datetime) -> tuple[int, int]:
    """Find the keys between which `created_at` passes the moment: all up to `low` are older, all after `high` newer.

    There is no index on `created_at`, and none is needed: a few lookups by key bring the two together.
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
    """The newest key; 0 if there is none."""
    return rows.order_by("-pk").values_list("pk", flat=True).first() or 0
