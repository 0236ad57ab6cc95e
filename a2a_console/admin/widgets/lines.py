"""The lines of a task's timeline, and the span of time and of events that they are read for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from a2a_tasks.models import Task

__all__ = ["MAX_COUNT", "TimelineLine", "LineSpan"]

#: The largest number of lines of one source in one span.
MAX_COUNT = 100


@dataclass(frozen=True, kw_only=True)
class TimelineLine:
    """Something that happened to a task: a template, which gets this as `line`."""

    at: datetime
    template: str
    content: Any
    #: True if the line reports a failure.
    is_grave: bool = False


@dataclass(frozen=True, kw_only=True)
class LineSpan:
    """A span of a task's timeline: its events from `first` to `last`, and their time."""

    task: Task
    first: int
    last: int
    #: The exclusive begin; None = the beginning of the task.
    since: datetime | None = None
    #: The inclusive end; None = now.
    until: datetime | None = None

    def has(self, at: datetime | None) -> bool:
        """Return whether the moment falls into the span."""
        if at is None or (self.since is not None and at <= self.since):
            return False
        return self.until is None or at <= self.until

    def of(self, column: str) -> dict[str, datetime]:
        """Return conditions on a column of moments."""
        bounds = {f"{column}__gt": self.since, f"{column}__lte": self.until}
        return {condition: at for condition, at in bounds.items() if at is not None}
