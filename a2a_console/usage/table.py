"""Sums of usage as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_console.search.task_record import write_cells
from a2a_console.usage.sums import FIGURES, GROUPS, UsageSums

__all__ = ["write_csv"]


def write_csv(by: str, sums: UsageSums) -> Iterator[str]:
    """Yield the lines of a CSV file (RFC 4180) with a heading. An unknown cost is empty."""
    yield write_cells((*GROUPS[by], *FIGURES, "cost", "currency"))
    for line in sums.lines:
        figures = (getattr(line, name) for name in FIGURES)
        yield write_cells((*line.key.values(), *figures, line.exact_cost, line.currency))
