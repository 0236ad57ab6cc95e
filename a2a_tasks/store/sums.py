"""What ended in slots that are over, counted up ahead: so that no look at the dashboard reads a week of tasks first.

Housekeeping does it, for those who see all, in the second half of the slot before it is needed; a process that finds
nothing counts for itself (`store/figures.py`). What is erased or begun anew meanwhile stays counted until the slot in
which it is used has ended.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from django.db.models import QuerySet
from django.utils import timezone

from a2a_tasks.models import EndedSums
from a2a_tasks.store.figures import PERIODS, Closed, Counts, Period, closed

__all__ = ["PREPARED", "count_up", "counted"]

#: The others are short enough to be read by whoever looks.
PREPARED = (PERIODS["day"], PERIODS["week"])


def counted(period: Period, since: datetime.datetime) -> Closed | None:
    """What was counted up for the period that begins then; None = nothing was."""
    found = EndedSums.objects.filter(period=period.name, since=since)
    body = found.values_list("body", flat=True).first()
    return None if body is None else Closed(since, _read(body))


def count_up() -> None:
    """Have sums for the periods as they are now, and those after the next step when it comes near; and no older ones."""
    now = timezone.now()
    for period in PREPARED:
        since = period.begin(now)
        ours = EndedSums.objects.filter(period=period.name)
        there = set(ours.values_list("since", flat=True))
        if any(old < since for old in there):
            ours.filter(since__lt=since).delete()
        for wanted in _wanted(period, since, now):
            if wanted not in there:
                _write(period, wanted)


def _wanted(
    period: Period, since: datetime.datetime, now: datetime.datetime
) -> Iterator[datetime.datetime]:
    yield since
    if now - since >= (period.slots - 0.5) * period.step:
        # What then is the last slot that is over ended half a slot ago: nothing of it is still to be written.
        yield since + period.step


def _write(period: Period, since: datetime.datetime) -> None:
    body = _written(closed(period, since, _everything).counts)
    row = EndedSums(period=period.name, since=since, body=body)
    # Whoever else does it at the same time has counted the same.
    EndedSums.objects.bulk_create([row], ignore_conflicts=True)


def _everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows


def _written(counts: Counts) -> str:
    found = (counts.slots, counts.agents, counts.tenants)
    lists = [[(*key, count) for key, count in some.items()] for some in found]
    return msgspec.json.encode(lists).decode()


def _read(body: str) -> Counts:
    lists = msgspec.json.decode(body)
    slots, agents, tenants = (
        Counter({tuple(key): count for *key, count in some}) for some in lists
    )
    return Counts(slots, agents, tenants)
