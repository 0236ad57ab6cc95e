"""Sums of usage as rows of a table, and as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from a2a_console.search.task_record import write_cells
from a2a_console.usage.sums import FIGURES, GROUPS, UsageLine, UsageSums

__all__ = ["describe_cost", "list_columns", "make_record", "write_csv"]


def list_columns(by: str) -> tuple[str, ...]:
    """Return the names of the columns of a table of this group."""
    return (*GROUPS[by], *FIGURES, "cost", "currency")


def make_record(line: UsageLine) -> Mapping[str, Any]:
    """Return a line by the names of its columns. The cost is exact, as a text; None = unknown."""
    figures = {name: getattr(line, name) for name in FIGURES}
    cost = None if line.cost is None else describe_cost(line.cost)
    return {**line.key, **figures, "cost": cost, "currency": line.currency}


def describe_cost(cost: Decimal) -> str:
    """Return the exact cost without an exponent and needless zeros."""
    text = f"{cost:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_csv(by: str, sums: UsageSums) -> Iterator[str]:
    """Yield the lines of a CSV file (RFC 4180) with a heading. An unknown cost is empty."""
    columns = list_columns(by)
    yield write_cells(columns)
    for line in sums.lines:
        record = make_record(line)
        yield write_cells(record[name] for name in columns)
