"""Charts as shapes in a plane of 100 by 100, which pages draw as SVG; every number of them stands in a table, too. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from a2a_tasks.admin.shown import moment
from a2a_tasks.store.figures import Series, in_words

__all__ = ["Bar", "Chart", "Line", "bars", "lines"]

#: Of the width of a slot that its bar takes.
FILLED = 0.82
#: What the top of a chart is a multiple of.
STEPS = (1, 2, 5)
#: Less than that is nothing.
LEAST = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line without gaps; a single number is a short one."""

    points: str
    colour: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A chart and its table."""

    name: str
    title: str
    #: Label and colour of each series.
    legend: tuple[tuple[str, str], ...]
    #: What stands at its top, middle and bottom, and at its left and right.
    heights: tuple[str, str, str]
    ends: tuple[str, str]
    bars: tuple[Bar, ...] = ()
    lines: tuple[Line, ...] = ()
    #: Of each slot the moment and its numbers; slots with nothing are left out.
    rows: tuple[tuple[str, tuple[str, ...]], ...] = ()


def bars(
    name: str, title: str, since: datetime, step: timedelta, series: Sequence[Series]
) -> Chart:
    """Counts, stacked."""
    sums = [sum(value or 0 for value in slot) for slot in _slots(series)]
    top = _top(max(sums, default=0))
    return _chart(
        name, title, since, step, series, top, "", tuple(_bars(since, step, series, top)), ()
    )


def lines(
    name: str, title: str, since: datetime, step: timedelta, series: Sequence[Series]
) -> Chart:
    """Seconds."""
    known = [value for one in series for value in one.values if value is not None]
    top = _top(max(known, default=0))
    drawn = tuple(line for one in series for line in _lines(one, top))
    return _chart(name, title, since, step, series, top, "s", (), drawn)


def _chart(  # noqa: PLR0913 - a chart is what it shows
    name: str,
    title: str,
    since: datetime,
    step: timedelta,
    series: Sequence[Series],
    top: float,
    unit: str,
    drawn_bars: tuple[Bar, ...],
    drawn_lines: tuple[Line, ...],
) -> Chart:
    count = len(series[0].values) if series else 0
    return Chart(
        name=name,
        title=title,
        legend=tuple((one.label, one.colour) for one in series),
        heights=(in_words(top, unit), _middle(top, unit), "0"),
        ends=(moment(since), moment(since + count * step)),
        bars=drawn_bars,
        lines=drawn_lines,
        rows=tuple(
            (moment(since + number * step), tuple(in_words(value, unit) for value in slot))
            for number, slot in enumerate(_slots(series))
            if any(slot)
        ),
    )


def _middle(top: float, unit: str) -> str:
    """Nothing if it would be half of something counted."""
    return in_words(top / 2, unit) if unit or top % 2 == 0 else ""


def _slots(series: Sequence[Series]) -> list[tuple[float | None, ...]]:
    return list(zip(*(one.values for one in series), strict=True))


def _bars(since: datetime, step: timedelta, series: Sequence[Series], top: float) -> Iterator[Bar]:
    slots = _slots(series)
    width = 100 / max(len(slots), 1)
    for number, slot in enumerate(slots):
        below = 0.0
        for one, value in zip(series, slot, strict=True):
            height = 100 * (value or 0) / top
            if height:
                yield Bar(
                    x=round(number * width + width * (1 - FILLED) / 2, 3),
                    y=round(100 - below - height, 3),
                    width=round(width * FILLED, 3),
                    height=round(height, 3),
                    colour=one.colour,
                    title=f"{moment(since + number * step)}: {in_words(value)} {one.label}",
                )
            below += height


def _lines(series: Series, top: float) -> Iterator[Line]:
    width = 100 / max(len(series.values), 1)
    points: list[str] = []
    for number, value in enumerate((*series.values, None)):
        if value is not None:
            y = round(100 - 100 * value / top, 3)
            points += [f"{round((number + 0.1) * width, 3)},{y}"] if not points else []
            points.append(f"{round((number + 0.9) * width, 3)},{y}")
        elif points:
            yield Line(" ".join(points), series.colour)
            points = []


def _top(most: float) -> float:
    """The next round number."""
    if most < LEAST:
        return 1
    power: float = 10.0 ** math.floor(math.log10(most))
    return next((power * step for step in STEPS if power * step >= most), power * 10)
