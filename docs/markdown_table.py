"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["table"]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table, with the names of its columns above it."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
