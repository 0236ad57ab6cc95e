"""Charts of counts: the page has the numbers in a table, of which `charts.js` draws bars."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from a2a_console.times import moment

__all__ = ["Chart"]


@dataclass(frozen=True, slots=True)
class Chart:
    """Series of numbers in slots of one length. The labels name the colours in the style of charts."""

    title: str
    since: datetime
    step: timedelta
    series: Mapping[str, Sequence[float]]
    unit: str = ""

    @property
    def data(self) -> str:
        """The chart as JSON."""
        begin, step = self.since.timestamp(), self.step.total_seconds()
        values = [list(values) for values in self.series.values()]
        return json.dumps({"since": begin, "step": step, "values": values, "unit": self.unit})

    @property
    def rows(self) -> list[tuple[str, tuple[float, ...]]]:
        """The begin of each slot with something in it, and its numbers."""
        slots = enumerate(zip(*self.series.values(), strict=True))
        return [
            (moment(self.since + number * self.step), slot) for number, slot in slots if any(slot)
        ]
