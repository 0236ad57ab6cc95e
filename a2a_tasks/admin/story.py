"""The one timeline of a task: its events, and everything else that happened meanwhile, in order; and its end that moves.

A page shows a window of events by number, and what others tell of the time these took (`beside.tell`). While the task has not
ended, the newest window has a *tail*: the lines after the last event that is settled. The browser asks for it again by that
event's number; what is told twice the same is answered by nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from a2a_tasks.admin import beside
from a2a_tasks.admin.beside import Line, Span
from a2a_tasks.admin.parts import Reading
from a2a_tasks.admin.timeline import EVENTS, Entry, Moments, Window, entries, folded
from a2a_tasks.models import Event, Task
from a2a_tasks.protocol.lifecycle import TERMINAL

__all__ = ["LIVE", "Story", "Tail", "tail", "told"]

EVENT = "admin/a2a_tasks/task/line_event.html"
#: Pieces of the last artifact that are told again and again while it grows.
PIECES = 50
#: What happened meanwhile may be told so much later: log lines are written once a second.
LATE = timedelta(seconds=2.5)
#: Events after which a page that follows begins anew, so that it does not grow for ever.
LIVE = 2_000


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The end of a timeline that moves."""

    lines: Sequence[Line]
    #: It tells of what came after this event.
    after: int
    #: What it looks like.
    html: SafeString

    @property
    def mark(self) -> str:
        """Stands for what it looks like, as a short word."""
        return hashlib.sha256(self.html.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Story:
    """Lines in order, the last of which may be a tail, and what there is more of than they tell."""

    lines: Sequence[Line]
    cut: Sequence[str]
    tail: Tail | None = None


def told(request: HttpRequest, task: Task, window: Window, reading: Reading) -> Story:
    """The window of the timeline; the newest one of a task that has not ended has a tail."""
    found, moments = entries(task.pk, window, reading)
    events = folded(found, reading)
    span = Span(
        task=task,
        first=window.first,
        last=window.last,
        since=moments.get(window.first - 1) if window.older else None,
        until=moments.get(window.last) if window.newer else None,
    )
    others, cut = beside.lines(request, span)
    lines = list(_merged(events, others))
    if window.newer or _is_over(task):
        return Story(lines=lines, cut=cut)
    settled = _settled(events, after=window.first - 1, before=timezone.now() - LATE)
    return _split(lines, cut, settled, moments)


def tail(request: HttpRequest, task: Task, after: int, reading: Reading) -> tuple[Story, int]:
    """What came after an event, and how many events are left out because there are too many of them."""
    first = max(after + 1, task.last_event - EVENTS + 1)
    window = Window(first=first, last=task.last_event, end=task.last_event)
    found, moments = entries(task.pk, window, reading)
    events = folded(found, reading)
    span = Span(task=task, first=first, last=task.last_event, since=_before(task, first, moments))
    others, cut = beside.lines(request, span)
    lines = list(_merged(events, others))
    left_out = first - after - 1
    if _is_over(task):
        return Story(lines=lines, cut=cut), left_out
    # What is left out is told once: then nothing waits for what is late.
    before = None if left_out else timezone.now() - LATE
    settled = _settled(events, after=first - 1, before=before)
    return _split(lines, cut, settled, moments), left_out


def _is_over(task: Task) -> bool:
    """Has it ended, and does nothing come late any more?"""
    return task.state in TERMINAL and task.status_at <= timezone.now() - LATE


def _before(task: Task, first: int, moments: Moments) -> datetime | None:
    """When the event before was; the log may have lost it."""
    if first - 1 in moments or first <= 1:
        return moments.get(first - 1)
    kept = Event.objects.filter(task_id=task.pk, number__gte=first - 1).order_by("number")
    return kept.values_list("created_at", flat=True).first()


def _merged(events: Sequence[Entry], others: Sequence[Line]) -> Iterator[Line]:
    """Both in order; events stay in the order of their numbers, and come first at a moment they share."""
    rest = list(others)
    for event in events:
        while rest and rest[0].at < event.at:
            yield rest.pop(0)
        is_grave = event.kind == "status" and event.what in {"failed", "rejected"}
        yield Line(at=event.at, template=EVENT, content=event, is_grave=is_grave)
    yield from rest


def _split(lines: list[Line], cut: Sequence[str], settled: int, moments: Moments) -> Story:
    """Everything up to the last event that is settled, and the tail."""
    at = moments.get(settled)
    ours = [line for line in lines if _is_after(line, settled, at)]
    rest = [line for line in lines if not _is_after(line, settled, at)]
    html = render_to_string("admin/a2a_tasks/task/lines.html", {"lines": ours})
    return Story(lines=rest, cut=cut, tail=Tail(lines=ours, after=settled, html=html))


def _settled(events: Sequence[Entry], after: int, before: datetime | None) -> int:
    """The last event whose line does not change any more: pieces may follow the last piece of an artifact.

    Nor is anything told late of the time up to it, if it is not after `before`.
    """
    old = [event for event in events if before is None or event.at <= before]
    if not old:
        return after
    last = old[-1]
    grows = last is events[-1] and last.is_piece and last.pieces < PIECES
    return last.first - 1 if grows else last.last


def _is_after(line: Line, number: int, at: datetime | None) -> bool:
    if isinstance(line.content, Entry):
        return line.content.first > number
    return at is None or line.at > at
