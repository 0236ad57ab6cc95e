"""Why a task stands as it does, as pages show it: `admin/a2a_tasks/task/standing.html`, with this under `standing`."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from a2a_tasks.operations.standing import Link, Reason, standing

__all__ = ["Line", "Shown", "shown_standing"]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A reason, and the page of what it is about, if the user may view it."""

    reason: Reason
    url: str = ""
    what: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Why the task stands as it does, and what waits beside it."""

    task: Line
    also: list[Line]


def shown_standing(request: HttpRequest, task: int) -> Shown:
    """Tell of the task with this primary key, which the user may view. Raises TaskNotFound."""
    found = standing(task)
    return Shown(task=_line(request, found), also=[_line(request, one) for one in found.also])


def _line(request: HttpRequest, reason: Reason) -> Line:
    link = reason.link
    if link is None or not _may_view(request, link):
        return Line(reason=reason)
    app, _, name = link.model.partition(".")
    return Line(
        reason=reason, url=reverse(f"admin:{app}_{name}_change", args=[link.key]), what=name
    )


def _may_view(request: HttpRequest, link: Link) -> bool:
    app, _, name = link.model.partition(".")
    return any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
