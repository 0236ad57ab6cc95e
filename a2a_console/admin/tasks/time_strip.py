"""The tasks of a list over time: bars that link to their span, drawn by the server. Only the newest ones are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import QuerySet

from a2a_console.search.selection import Selection, page
from a2a_console.times import duration, moment
from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState

__all__ = ["TimeStrip", "draw_strip"]

#: The number of tasks that are read, and that of bars; the height of the strip.
READ, BARS, HEIGHT = 2_000, 60, 40


class Bar(NamedTuple):
    """A bar: its place and heights in the drawing, its link, and its title."""

    x: int
    height: float
    failed: float
    url: str
    title: str

    @property
    def top(self) -> float:
        """The upper end of the bar."""
        return round(HEIGHT - self.height, 1)

    @property
    def top_of_failed(self) -> float:
        """The upper end of its red part."""
        return round(HEIGHT - self.failed, 1)


class TimeStrip(NamedTuple):
    """The bars, oldest first, and what they are about."""

    bars: list[Bar]
    since: datetime
    until: datetime
    words: str


def draw_strip(
    rows: QuerySet[Task], spans: Selection, link: Callable[[dict[str, Any]], str]
) -> TimeStrip | None:
    """Return the strip of the newest READ of these tasks; None if there are fewer than two."""
    bare = rows.select_related(None).only("created_at", "state")
    tasks = page(bare, spans, size=READ).items
    if len(tasks) < 2:  # noqa: PLR2004 - a span needs two ends
        return None
    since, until = tasks[-1].created_at, tasks[0].created_at
    step = max((until - since) / BARS, timedelta(milliseconds=1))
    counts, failed = Counter[int](), Counter[int]()
    for task in tasks:
        slot = max(0, min(BARS - 1, int((task.created_at - since) / step)))
        counts[slot] += 1
        failed[slot] += task.state == TaskState.FAILED
    most = max(counts.values())
    bars = []
    for slot, count in sorted(counts.items()):
        begin, end = since + slot * step, since + (slot + 1) * step + timedelta(milliseconds=1)
        ends = {"since": begin, "until": end}
        url = link({name: at.isoformat(timespec="milliseconds") for name, at in ends.items()})
        title = f"{count} from {moment(begin)}, {failed[slot]} failed"
        height, red = (round(HEIGHT * number / most, 1) for number in (count, failed[slot]))
        bars.append(Bar(slot * 10, height, red, url, title))
    words = f"{len(tasks):,} newest tasks, {duration(step)} a bar"
    # Scripts count in milliseconds: the end is a little later, so that a span to the edge has the newest task.
    return TimeStrip(bars, since, since + BARS * step + timedelta(milliseconds=2), words)
