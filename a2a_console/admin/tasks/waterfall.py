"""The waterfall of a task: bars that show where the time went. The server draws it; long idle times are folded."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import dropwhile, groupby

from django.http import HttpRequest
from django.utils import timezone

from a2a_console.admin.webhooks.sent_notifications import may_view as may_view_webhooks
from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.staff import may_view
from a2a_console.diagnosis.spans import MOST, Kind, Span, read_spans
from a2a_console.staff import may_see_traces, tenants_of
from a2a_console.times import duration
from a2a_tasks.agents.wanted_call import ANSWER
from a2a_tasks.models import Run, Task

__all__ = ["Waterfall", "draw"]

#: The width of the picture in percent, that of a folded time, and the least of a bar.
WIDTH, FOLDED, LEAST = 100.0, 5.0, 0.4
#: The part of the time from which on an idle time is folded.
LONG = 0.2
#: The shortest time that is folded.
SHORTEST = timedelta(seconds=2)
#: Most rows, those of folded rows among them, and most characters of a label and of what a bar says.
ROWS, LABEL, SAYS = 200, 60, 200
#: Most marks on the axis, and the least distance between two.
MARKS, APART = 5, 12.0
#: The spans in the row of a run.
OF_RUN = {Kind.QUEUE, Kind.ATTEMPT, Kind.WAIT}
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class WaterfallBar:
    """A span as it is drawn: its place, and what a pointer or a screen reader learns."""

    x: str
    width: str
    css: str
    says: str
    #: The key of its span; empty = it opens nothing.
    key: str = ""
    #: True if it is hatched, since nobody works meanwhile.
    is_idle: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class WaterfallRow:
    """Bars beside each other."""

    label: str
    kind: str
    bars: Sequence[WaterfallBar]
    took: str
    #: The rows that it folds, each with one bar.
    inside: Sequence[WaterfallRow] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Waterfall:
    """The context of the template."""

    rows: list[WaterfallRow]
    #: Rows that are left out, and times that are folded, with their places.
    left_out: int
    folds: list[WaterfallBar]
    #: Times on the axis, with their places.
    marks: list[tuple[str, str]]
    total: str
    #: True while something is under way.
    is_open: bool
    #: True if there may be older spans, which were not read.
    is_cut: bool
    #: True if the begin of a span was not recorded.
    has_ticks: bool
    #: The span of the bar that was chosen.
    chosen: Span | None


@dataclass(slots=True)
class Axis:
    """The places of moments between the begin and the end; an idle time that is long takes a fixed place."""

    began: datetime
    ended: datetime
    folds: list[tuple[datetime, datetime]] = field(default_factory=list)

    @property
    def scale(self) -> float:
        """The width of a second that is not folded."""
        hidden = sum((end - begin).total_seconds() for begin, end in self.folds)
        shown = (self.ended - self.began).total_seconds() - hidden
        return (WIDTH - FOLDED * len(self.folds)) / max(shown, 0.001)

    def locate(self, at: datetime) -> float:
        """Return the place of a moment."""
        x, free = 0.0, self.began
        for begin, end in self.folds:
            if at <= begin:
                break
            x += (begin - free).total_seconds() * self.scale
            x += FOLDED * min(1.0, (at - begin) / (end - begin))
            free = end
        return min(WIDTH, x + max(0.0, (at - free).total_seconds()) * self.scale)

    def fold(self, idle: Iterable[tuple[datetime, datetime]]) -> None:
        """Fold the longest idle times, as long as one takes more than its part of what is shown."""
        left = self.ended - self.began
        for begin, end in sorted(idle, key=lambda gap: gap[0] - gap[1]):
            if end - begin > max(SHORTEST, LONG * left):
                self.folds.append((begin, end))
                left -= end - begin
        self.folds.sort()


def draw(request: HttpRequest, task: Task) -> Waterfall | None:
    """Return the waterfall of a task as far as this user may see it; None if nothing is known."""
    spans = read_spans(
        task,
        shows_runs=may_view(request, Run),
        shows_faults=may_see_traces(tenants_of(request.user)),
        shows_webhooks=may_view_webhooks(request),
    )
    if not spans:
        return None
    # Steps of waits and calls have no work of their own.
    told = {span.label for span in spans if span.kind is Kind.WAIT}
    calls = {span.step for span in spans if span.kind is Kind.CALL}
    told |= calls | {f"{name}{ANSWER}" for name in calls}
    spans = [span for span in spans if span.kind is not Kind.STEP or span.label not in told]
    now = timezone.now()
    ends = [span.ended or now for span in spans]
    axis = Axis(task.created_at, max([*ends, task.created_at + timedelta(milliseconds=1)]))
    axis.fold(_find_idle(spans, axis, now))
    rows, left_out = _cut([_make_row(group, axis, now) for group in _group(spans)])
    wanted = request.GET.get("bar")
    return Waterfall(
        rows=rows,
        left_out=left_out,
        folds=[_draw_fold(axis, *fold) for fold in axis.folds],
        marks=list(_list_ticks(axis)),
        total=duration(axis.ended - axis.began),
        is_cut=len(spans) >= MOST,
        has_ticks=any(span.began is None for span in spans),
        is_open=any(span.ended is None for span in spans),
        chosen=next((span for span in spans if span.key == wanted), None) if wanted else None,
    )


def _cut(rows: list[WaterfallRow]) -> tuple[list[WaterfallRow], int]:
    """Return as many of the rows as fit, and the number of those that are left out."""
    fit, left = [], ROWS - len(rows)
    for row in rows[:ROWS]:
        fit.append(replace(row, inside=row.inside[: max(0, left)]))
        left -= len(row.inside)
    return fit, max(0, -left)


def _list_ticks(axis: Axis) -> Iterator[tuple[str, str]]:
    """Yield times since the begin with their places: round ones that are not too close to each other."""
    total = (axis.ended - axis.began).total_seconds()
    hidden = sum((end - begin).total_seconds() for begin, end in axis.folds)
    step = 10.0 ** math.floor(math.log10(max((total - hidden) / MARKS, 0.001)))
    step *= next(factor for factor in (1, 2, 5, 10) if step * factor * MARKS >= total - hidden)
    last = -APART
    free = axis.began
    for begin, end in [*axis.folds, (axis.ended, axis.ended)]:
        first = math.ceil((free - axis.began).total_seconds() / step)
        for number in range(first, first + 2 * MARKS):
            at = axis.began + timedelta(seconds=number * step)
            if at > begin:
                break
            if (x := axis.locate(at)) - last >= APART and x <= WIDTH - APART / 2:
                yield f"{x:.2f}%", duration(at - axis.began) if number else "0"
                last = x
        free = end


def _find_idle(
    spans: Sequence[Span], axis: Axis, now: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times in which nobody worked; none if nobody has worked yet."""
    free = axis.began
    busy = [(span.began, span.ended or now) for span in spans if span.began and not span.is_idle]
    for begin, end in sorted([*busy, (axis.ended, axis.ended)]) if busy else ():
        if begin > free:
            yield free, begin
        free = max(free, end)


def _group(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Yield the spans that have one row: those of a run, equal neighbours, those of a receiver.

    The waits of a run are in its row, too, so that its bars add up to its duration.
    """
    for (kind, of), group in groupby(sorted(spans, key=_sort_key), _key):
        found = list(group)
        if kind == "run":
            found = [span for span in spans if span.kind in OF_RUN and span.of == of]
        yield found


def _sort_key(span: Span) -> tuple[bool, bool, str]:
    """Return where a span stands: waits come below the work, and webhooks last, by receiver."""
    is_webhook = span.kind is Kind.WEBHOOK
    return is_webhook, span.kind is Kind.WAIT, span.label if is_webhook else ""


def _key(span: Span) -> tuple[str, object]:
    if span.kind in {Kind.QUEUE, Kind.ATTEMPT}:
        return "run", span.of
    if span.kind is Kind.CALL:
        return span.kind, span.of
    return span.kind, _NUMBER.sub("", span.label)


def _make_row(group: list[Span], axis: Axis, now: datetime) -> WaterfallRow:
    first, last = group[0], group[-1]
    kind, label = str(first.kind), first.label
    if first.kind in {Kind.QUEUE, Kind.ATTEMPT}:
        kind, label = "run", f"{first.of}"
    inside: Sequence[WaterfallRow] = ()
    if len(group) > 1 and kind != "run":
        if any(span.label != label for span in group):
            pairs = zip(_NUMBER.split(label), _NUMBER.split(last.label), strict=True)
            other = dropwhile(lambda pair: pair[0] == pair[1], pairs)
            label = f"{label} … {''.join(part for _, part in other)}"
            inside = [_make_row([span], axis, now) for span in group]
        tries = any(span.is_fault for span in group) and not inside
        label = f"{label[:LABEL]} ({len(group)} {'tries' if tries else '×'})"
    spent = [(span.ended or now) - span.began for span in group if span.began]
    return WaterfallRow(
        label=escape_name(label, LABEL + 12),
        kind=kind,
        bars=[_draw(span, axis, now, opens=not inside) for span in group],
        took=duration(sum(spent, timedelta())) if spent else "",
        inside=inside,
    )


def _draw(span: Span, axis: Axis, now: datetime, *, opens: bool) -> WaterfallBar:
    """Draw a span; one without a begin is a tick at its end."""
    end = span.ended or now
    begin = span.began or end
    x = axis.locate(begin)
    width = max(axis.locate(end) - x, LEAST)
    took = f", {duration(end - begin)}" if span.began else ""
    says = f"{span.kind}: {span.label}{took}" if span.label != span.kind else f"{span.kind}{took}"
    css = f"a2a-bar-{span.kind.name.lower()}" + (" a2a-bar-fault" if span.is_fault else "")
    return WaterfallBar(
        x=f"{min(x, WIDTH - LEAST):.2f}%",
        width=f"{width:.2f}%",
        css=css if span.ended else f"{css} a2a-bar-open",
        says=escape_name(f"{says}: {span.note}" if span.note else says, SAYS),
        key=span.key if opens else "",
        is_idle=span.is_idle,
    )


def _draw_fold(axis: Axis, begin: datetime, end: datetime) -> WaterfallBar:
    says = f"{duration(end - begin)} without work, folded"
    return WaterfallBar(
        x=f"{axis.locate(begin):.2f}%", width=f"{FOLDED:.2f}%", css="a2a-bar-fold", says=says
    )
