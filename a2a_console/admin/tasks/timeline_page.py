"""The timeline of a task: its events and the lines of other sources, in order, with an end that is updated.

A page shows a window of events by number, and the lines of other sources in the same span of time (`sources.py`).
While the task has not ended, the newest window has a *tail*: the lines after the last settled event. The browser
polls the tail by the number of that event; the answer to an unchanged tail is empty.
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

from a2a_console.admin.tasks.sources import lines_of
from a2a_console.admin.tasks.timeline import EVENTS, EventEntry, Moments, Window, entries, fold
from a2a_console.admin.widgets.lines import LineSpan, TimelineLine
from a2a_console.admin.widgets.parts import Reading
from a2a_tasks.models import Event, Task
from a2a_tasks.protocol.lifecycle import TERMINAL

__all__ = ["LIVE", "Story", "Tail", "tail", "read_story"]

EVENT = "admin/a2a_tasks/task/line_event.html"
#: Chunks of the last artifact that may be sent again and again while it grows.
PIECES = 50
#: The longest delay of lines from other sources: log lines are written once a second.
LATE = timedelta(seconds=2.5)
#: The number of events after which a page that follows a task is reloaded, so that it does not grow for ever.
LIVE = 2_000


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The end of a timeline that is updated."""

    lines: Sequence[TimelineLine]
    #: The number of the last settled event, which the tail follows.
    after: int
    #: The rendered lines.
    html: SafeString

    @property
    def mark(self) -> str:
        """A short hash of the rendered lines."""
        return hashlib.sha256(self.html.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Story:
    """The lines of a page in order, the names of sources that were cut, and the tail if there is one."""

    lines: Sequence[TimelineLine]
    cut: Sequence[str]
    tail: Tail | None = None


def read_story(request: HttpRequest, task: Task, window: Window, reading: Reading) -> Story:
    """Return a window of the timeline. The newest window of a task that has not ended has a tail."""
    found, moments = entries(task.pk, window, reading)
    events = fold(found, reading)
    span = LineSpan(
        task=task,
        first=window.first,
        last=window.last,
        since=moments.get(window.first - 1) if window.older else None,
        until=moments.get(window.last) if window.newer else None,
    )
    others, cut = lines_of(request, span)
    lines = list(_merge(events, others))
    if window.newer or _is_over(task):
        return Story(lines=lines, cut=cut)
    settled = _find_settled(events, after=window.first - 1, before=timezone.now() - LATE)
    return _split(lines, cut, settled, moments)


def tail(request: HttpRequest, task: Task, after: int, reading: Reading) -> tuple[Story, int]:
    """Return the lines after an event, and the number of events that are left out because there are too many."""
    first = max(after + 1, task.last_event - EVENTS + 1)
    window = Window(first=first, last=task.last_event, end=task.last_event)
    found, moments = entries(task.pk, window, reading)
    events = fold(found, reading)
    span = LineSpan(
        task=task, first=first, last=task.last_event, since=_before(task, first, moments)
    )
    others, cut = lines_of(request, span)
    lines = list(_merge(events, others))
    left_out = first - after - 1
    if _is_over(task):
        return Story(lines=lines, cut=cut), left_out
    # The number of events left out is shown once, so this answer settles events without waiting for late lines.
    before = None if left_out else timezone.now() - LATE
    settled = _find_settled(events, after=first - 1, before=before)
    return _split(lines, cut, settled, moments), left_out


def _is_over(task: Task) -> bool:
    """Return whether the task has ended and no line can come late any more."""
    return task.state in TERMINAL and task.status_at <= timezone.now() - LATE


def _before(task: Task, first: int, moments: Moments) -> datetime | None:
    """Return the moment of the event before; of the next stored one if the log has deleted it."""
    if first - 1 in moments or first <= 1:
        return moments.get(first - 1)
    kept = Event.objects.filter(task_id=task.pk, number__gte=first - 1).order_by("number")
    return kept.values_list("created_at", flat=True).first()


def _merge(events: Sequence[EventEntry], others: Sequence[TimelineLine]) -> Iterator[TimelineLine]:
    """Merge both by time. Events stay in the order of their numbers and come first at the same moment."""
    rest = list(others)
    for event in events:
        while rest and rest[0].at < event.at:
            yield rest.pop(0)
        is_grave = event.kind == "status" and event.what in {"failed", "rejected"}
        yield TimelineLine(at=event.at, template=EVENT, content=event, is_grave=is_grave)
    yield from rest


def _split(lines: list[TimelineLine], cut: Sequence[str], settled: int, moments: Moments) -> Story:
    """Split the lines after the last settled event: the lines after it are the tail."""
    at = moments.get(settled)
    ours = [line for line in lines if _is_after(line, settled, at)]
    rest = [line for line in lines if not _is_after(line, settled, at)]
    html = render_to_string("admin/a2a_tasks/task/lines.html", {"lines": ours})
    return Story(lines=rest, cut=cut, tail=Tail(lines=ours, after=settled, html=html))


def _find_settled(events: Sequence[EventEntry], after: int, before: datetime | None) -> int:
    """Return the last event whose line does not change any more. Chunks may follow the last chunk of an artifact.

    No line of another source comes late for the time up to an event that is not after `before`.
    """
    old = [event for event in events if before is None or event.at <= before]
    if not old:
        return after
    last = old[-1]
    grows = last is events[-1] and last.is_piece and last.pieces < PIECES
    return last.first - 1 if grows else last.last


def _is_after(line: TimelineLine, number: int, at: datetime | None) -> bool:
    if isinstance(line.content, EventEntry):
        return line.content.first > number
    return at is None or line.at > at
