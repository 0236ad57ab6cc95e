"""What other apps show on the page of a task, below its own sections.

This app knows nothing of them; each registers itself when its admin is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

__all__ = ["Section", "Show", "of", "show"]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A piece of the page: a template, and what it finds under the name `section`."""

    template: str
    content: Any


#: From the request and the primary key of a task: what to show, or None. It judges by itself what the user may see.
Show = Callable[[HttpRequest, int], Section | None]

_shows: list[Show] = []


def show(make: Show) -> None:
    """Have `make` asked for each page of a task."""
    if make not in _shows:
        _shows.append(make)


def of(request: HttpRequest, task: int) -> list[Section]:
    """Everything that others show of this task to this user."""
    made = (make(request, task) for make in _shows)
    return [section for section in made if section is not None]
