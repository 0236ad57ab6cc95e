"""Bar charts as shapes in a plane of 100 by 100, which pages draw as SVG, with their numbers in a table. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from a2a_console.times import moment

__all__ = ["Bar", "Chart", "draw_bars"]

#: The part of a slot's width that its bar takes.
FILLED = 0.82
#: The top of a chart is one of these times a power of ten.
STEPS = (1, 2, 5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """A rectangle. Its label names its colour in the style of charts."""

    x: float
    y: float
    width: float
    height: float
    label: str
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A chart and its table."""

    title: str
    #: The labels of its series.
    labels: tuple[str, ...]
    #: The labels at its top, middle and bottom, and at its left and right.
    heights: tuple[str, str, str]
    ends: tuple[str, str]
    bars: tuple[Bar, ...]
    #: The begin of each slot and its counts; empty slots are left out.
    rows: tuple[tuple[str, tuple[int, ...]], ...]


def draw_bars(
    title: str, since: datetime, step: timedelta, series: Mapping[str, Sequence[int]]
) -> Chart:
    """Return a chart of counts, stacked in each slot."""
    slots = list(zip(*series.values(), strict=True))
    top = _round_up(max(map(sum, slots), default=0))
    begins = [moment(since + number * step) for number in range(len(slots) + 1)]
    return Chart(
        title=title,
        labels=tuple(series),
        heights=(f"{top:,}", f"{top // 2:,}" if top % 2 == 0 else "", "0"),
        ends=(begins[0], begins[-1]),
        bars=tuple(_stack(slots, tuple(series), begins, top)),
        rows=tuple(row for row in zip(begins, slots, strict=False) if any(row[1])),
    )


def _stack(
    slots: Sequence[Sequence[int]], labels: Sequence[str], begins: Sequence[str], top: int
) -> Iterator[Bar]:
    width = 100 / max(len(slots), 1)
    for number, slot in enumerate(slots):
        below = 0.0
        for label, value in zip(labels, slot, strict=True):
            height = 100 * value / top
            below += height
            if value:
                yield Bar(
                    x=round(number * width + width * (1 - FILLED) / 2, 3),
                    y=round(100 - below, 3),
                    width=round(width * FILLED, 3),
                    height=round(height, 3),
                    label=label,
                    title=f"{begins[number]}: {value:,} {label}",
                )


def _round_up(count: int) -> int:
    """Return the next round number, 1 at least."""
    power: int = 10 ** int(math.log10(max(count, 1)))
    return next((power * step for step in STEPS if power * step >= count), power * 10)
