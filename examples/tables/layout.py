"""Rows as text that lines up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from examples.tables.engine import Result
from examples.tables.table import Cell

__all__ = ["shown", "text_table"]

WIDEST = 60
#: Numbers from here on are written with an exponent.
LONG = 1e15


def shown(cell: Cell) -> str:
    """A cell as people read it, on one line and not too wide."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.2f}" if abs(cell) < LONG else f"{cell:g}"
    text = f"{cell:,}" if isinstance(cell, int) else re.sub(r"\s+", " ", cell)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def text_table(result: Result) -> str:
    """The answer as a text table: numbers to the right, everything else to the left."""
    lines = [list(map(shown, result.columns)), *(list(map(shown, row)) for row in result.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [_numeric(column) for column in zip(*result.rows, strict=True)] or [False] * len(widths)
    rule = "  ".join("-" * width for width in widths)
    body = [_line(line, widths, right) for line in lines]
    return "\n".join([body[0], rule, *body[1:], _closing(result)])


def _numeric(cells: Sequence[Cell]) -> bool:
    return all(not isinstance(cell, str) for cell in cells)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    aligned = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(aligned).rstrip()


def _closing(result: Result) -> str:
    count = len(result.rows)
    rows = f"{count} row" if count == 1 else f"{count} rows"
    return f"(the first {rows}; there are more)" if result.truncated else f"({rows})"
