"""The attempts of a run that ended before the run did: parked, handed back, or dead. The last one is in the run's own columns.

Each is written by the statement that ends it, so that the usual run costs nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db import models
from django.db.models import Func

from a2a_tasks.models import Run, RunStatus
from a2a_tasks.store.sql_files import read_sql

__all__ = [
    *("DIED", "HANDED_BACK", "PARKED", "EndSegment", "Segment"),
    *("find_last_begin", "read_segments"),
]

PARKED, DIED, HANDED_BACK = "parked", "died", "handed back"
#: Most segments of a run. Beyond that, the first one stays, and the oldest of the others goes.
MOST = 100
#: The value of `past` with the present attempt, by vendor.
PAST = {vendor: read_sql(f"past_{vendor}", most=str(MOST)) for vendor in ("postgresql", "sqlite")}


class EndSegment(Func):
    """The value of `past` in an update of Django's that ends the attempt of a run."""

    def __init__(self, how: str, step: str = "") -> None:
        """Make it for an attempt that was PARKED in this step, HANDED_BACK, or that DIED."""
        super().__init__(output_field=models.JSONField())
        self._values = [how, step]

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: Any, **_: Any
    ) -> tuple[str, list[Any]]:
        """Return the SQL of this database, and its values."""
        return PAST[connection.vendor], self._values


class Segment(NamedTuple):
    """One attempt: the times by the database's clock."""

    attempt: int
    worker: str
    began: datetime.datetime
    ended: datetime.datetime
    how: str
    step: str


def read_segments(past: Iterable[Any]) -> list[Segment]:
    """Return the segments in the value of `Run.past`, the oldest first."""
    return [
        Segment(attempt, worker, _moment(began), _moment(ended), how, step)
        for attempt, worker, began, ended, how, step in past
        if began is not None
    ]


def find_last_begin(run: Run) -> datetime.datetime | None:
    """Return the begin of the attempt that is under way, or that ended the run; None if the run waits, or ended while it waited."""
    past = read_segments(run.past)
    is_past = bool(past) and run.started_at is not None and run.started_at <= past[-1].ended
    return None if is_past or run.status == RunStatus.QUEUED else run.started_at


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
