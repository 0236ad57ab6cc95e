"""What others show on the page of a task: sections below its own, and lines of its timeline.

This app knows nothing of other apps; each registers itself when its admin is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest

from a2a_tasks.models import Task

__all__ = ["MOST", "Line", "Section", "Show", "Span", "Tell", "lines", "of", "show", "tell"]

#: Lines of one source in one span.
MOST = 100


@dataclass(frozen=True, kw_only=True)
class Section:
    """A piece of the page: a template, and what it finds under the name `section`."""

    template: str
    content: Any


#: From the request and the primary key of a task: what to show, or None. It judges by itself what the user may see.
Show = Callable[[HttpRequest, int], Section | None]


@dataclass(frozen=True, kw_only=True)
class Line:
    """Something that happened to a task: a template, and what it finds under the name `line`."""

    at: datetime
    template: str
    content: Any
    #: Is it something that went wrong?
    is_grave: bool = False


@dataclass(frozen=True, kw_only=True)
class Span:
    """A piece of a task's life: its events from `first` to `last`, and the time they took."""

    task: Task
    first: int
    last: int
    #: After this moment; None = from the beginning.
    since: datetime | None = None
    #: Until this moment, which belongs to it; None = until now.
    until: datetime | None = None

    def has(self, at: datetime | None) -> bool:
        """Does the moment fall into it?"""
        if at is None or (self.since is not None and at <= self.since):
            return False
        return self.until is None or at <= self.until

    def of(self, column: str) -> dict[str, datetime]:
        """Conditions on a column with a moment."""
        bounds = {f"{column}__gt": self.since, f"{column}__lte": self.until}
        return {condition: at for condition, at in bounds.items() if at is not None}


#: What happened in a span, the oldest first: the newest MOST + 1 lines at the most (then it is said that there are more), read by
#: slices along an index.
#: It judges by itself what the user may see.
Tell = Callable[[HttpRequest, Span], Iterable[Line]]

_shows: list[Show] = []
_tells: dict[str, Tell] = {}


def show(make: Show) -> None:
    """Have `make` asked for each page of a task."""
    if make not in _shows:
        _shows.append(make)


def of(request: HttpRequest, task: int) -> list[Section]:
    """Everything that others show of this task to this user."""
    made = (make(request, task) for make in _shows)
    return [section for section in made if section is not None]


def tell(what: str, source: Tell) -> None:
    """Have `source` asked for each piece of a timeline; `what` it tells of, in the plural."""
    _tells[what] = source


def lines(request: HttpRequest, span: Span) -> tuple[list[Line], list[str]]:
    """Everything that is told of a span, in order; and what there is more of than is told."""
    told: list[Line] = []
    cut: list[str] = []
    for what, source in _tells.items():
        found = sorted(source(request, span), key=lambda line: line.at)
        cut += [what] if len(found) > MOST else []
        told += found[-MOST:]
    return sorted(told, key=lambda line: line.at), cut
