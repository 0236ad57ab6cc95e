"""A bar chart as SVG: a pure function of labels and numbers. No scripts, no links; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["Bar", "bar_chart"]

WIDTH, LABELS, VALUES = 720, 160, 100
TOP, STEP, THICK = 48, 26, 18
INK, BAR = "#1f2933", "#3b7dd8"
#: Characters no XML document may have, escaped or not.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LONGEST_LABEL = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, how long it is, and how that is said."""

    label: str
    value: float
    said: str


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Draw horizontal bars from a common zero line; negative ones go to its left."""
    height = TOP + STEP * len(bars) + 12
    lowest = min([0.0, *(bar.value for bar in bars)])
    highest = max([0.0, *(bar.value for bar in bars)])
    # Halves, because the distance of two floats may be more than a float.
    span = (highest / 2 - lowest / 2) or 1.0
    zero = (0.0 - lowest / 2) / span
    drawn = [_bar(TOP + STEP * at, bar, zero, bar.value / 2 / span) for at, bar in enumerate(bars)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="13" fill="{INK}">',
            f"<title>{_text(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            f'<text x="12" y="26" font-size="16" font-weight="bold">{_text(title)}</text>',
            *drawn,
            "</svg>\n",
        ]
    )


def _bar(y: int, bar: Bar, zero: float, share: float) -> str:
    room = WIDTH - LABELS - VALUES
    start, end = sorted((zero, zero + share))
    middle = y + THICK - 5
    return (
        f'<text x="{LABELS - 8}" y="{middle}" text-anchor="end">{_text(_short(bar.label))}</text>'
        f'<rect x="{LABELS + room * start:.1f}" y="{y}" width="{room * (end - start):.1f}" '
        f'height="{THICK}" fill="{BAR}"><title>{_text(bar.label)}: {_text(bar.said)}</title></rect>'
        f'<text x="{LABELS + room * end + 6:.1f}" y="{middle}">{_text(bar.said)}</text>'
    )


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _text(value: str) -> str:
    return escape(NOT_XML.sub("\ufffd", value))
