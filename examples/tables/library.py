"""The tables at hand: those shipped with the app, and those a message brings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType

from a2a_tasks.agents import Part
from examples.tables.faults import Refused
from examples.tables.table import Table, read_csv, table_name

__all__ = ["brought", "is_csv", "shipped"]

DATA = Path(__file__).parent / "data"
MOST_FILES = 5
CSV = "text/csv"


@functools.cache
def shipped() -> MappingProxyType[str, Table]:
    """The app's own tables, by name; read once a process."""
    tables = [read_csv(path.stem, path.read_bytes()) for path in sorted(DATA.glob("*.csv"))]
    return MappingProxyType({table.name: table for table in tables})


def is_csv(part: Part) -> bool:
    """Is this part a CSV file? (The host lets no part of another type through, but plain text.)"""
    return (part.media_type or "").partition(";")[0].strip().lower() == CSV


def brought(parts: Iterable[Part], read: Callable[[Part], bytes]) -> dict[str, Table]:
    """The tables among parts, by name; of two with one name the later counts. `read` gives the bytes of a file.

    Raises Refused, and what `read` raises but ValueError.
    """
    files = [part for part in parts if is_csv(part)]
    if len(files) > MOST_FILES:
        raise Refused(f"At most {MOST_FILES} files, please.")
    tables = [read_csv(table_name(part.filename), _content(part, read)) for part in files]
    return {table.name: table for table in tables}


def _content(part: Part, read: Callable[[Part], bytes]) -> bytes:
    if isinstance(part.text, str):
        return part.text.encode()
    try:
        return read(part)
    except ValueError:
        raise Refused("Send the CSV file itself: this agent fetches nothing.") from None
