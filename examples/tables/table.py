"""A table: a name, columns with types, rows. Read from CSV text, within limits, and never changed."""

from __future__ import annotations

import csv
import enum
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from examples.tables.faults import NoTable, Refused, Unknown, Word
from examples.tables.parser import number

__all__ = ["Cell", "Column", "Table", "Type", "choose", "read_csv", "table_name"]

Cell = str | int | float | None
MOST_BYTES = 2_000_000
MOST_ROWS = 20_000
MOST_COLUMNS = 64
LONGEST_NAME = 80
#: 007 and +49 are no numbers but codes: they would lose what they say.
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,400})")
REAL = re.compile(r"-?(0|[1-9][0-9]{0,400})(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,3})?")


class Type(enum.Enum):
    """What a column holds; the value is SQLite's word for it."""

    INTEGER = "INTEGER"
    REAL = "REAL"
    TEXT = "TEXT"

    @property
    def numeric(self) -> bool:
        """Can it be added up?"""
        return self is not Type.TEXT


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def index(self, word: Word, *, numeric: bool = False) -> int:
        """Where a column is. Raises Unknown if there is none (or none that is numeric) of that name."""
        names = {
            column.name.lower(): at
            for at, column in enumerate(self.columns)
            if column.type.numeric or not numeric
        }
        if word.name.lower() in names:
            return names[word.name.lower()]
        options = [self.columns[at].name for at in names.values()]
        raise Unknown(f"{'numeric ' * numeric}column of {self.name}", word, options)


def choose(tables: Mapping[str, Table], word: Word | None, in_hand: str | None) -> Table:
    """The table a question is about: the named one, else the one in hand. Raises Unknown and NoTable."""
    if word is None:
        if in_hand is None or in_hand not in tables:
            raise NoTable(list(tables))
        return tables[in_hand]
    for name, table in tables.items():
        if name.lower() == word.name.lower():
            return table
    raise Unknown("table", word, list(tables))


def table_name(filename: str | None) -> str:
    """A file's name as a name that needs no quoting."""
    stem = re.sub(r"\.csv$", "", filename or "file", flags=re.IGNORECASE)
    name = re.sub(r"\W+", "_", stem).strip("_").lower()[:LONGEST_NAME] or "file"
    return f"file_{name}" if name[0].isdecimal() else name


def read_csv(name: str, content: bytes) -> Table:
    """Read UTF-8 CSV with a header line. Raises Refused for what is none, and beyond the limits."""
    if len(content) > MOST_BYTES:
        raise Refused(f"{name}: a file has at most {MOST_BYTES:,} bytes.")
    try:
        lines = list(_lines(name, content.decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise Refused(f"{name}: the file must be UTF-8 text.") from None
    except csv.Error as fault:
        raise Refused(f"{name}: not readable as CSV ({fault}).") from None
    if not lines:
        raise Refused(f"{name}: the file is empty.")
    header = _header(name, lines[0])
    rows = [_fitting(name, at, line, len(header)) for at, line in enumerate(lines[1:], 2)]
    types = [_type(column) for column in zip(*rows, strict=True)] or [Type.TEXT] * len(header)
    return Table(
        name,
        tuple(Column(*column) for column in zip(header, types, strict=True)),
        tuple(tuple(map(_cell, row, types)) for row in rows),
    )


def _lines(name: str, text: str) -> Iterable[list[str]]:
    for line in csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True):
        if any(cell.strip() for cell in line):  # blank lines are nothing
            yield line


def _delimiter(text: str) -> str:
    """What separates the header's names: spreadsheets of half the world write semicolons."""
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _header(name: str, cells: Sequence[str]) -> list[str]:
    if len(cells) > MOST_COLUMNS:
        raise Refused(f"{name}: a table has at most {MOST_COLUMNS} columns.")
    names = [cell.strip()[:LONGEST_NAME] or f"column {at}" for at, cell in enumerate(cells, 1)]
    doubled = [key for key, times in Counter(map(str.lower, names)).items() if times > 1]
    if doubled:
        raise Refused(f"{name}: two columns are called {doubled[0]!r}.")
    return names


def _fitting(name: str, at: int, line: list[str], width: int) -> list[str]:
    if at > MOST_ROWS + 1:
        raise Refused(f"{name}: a table has at most {MOST_ROWS:,} rows.")
    if len(line) > width:
        raise Refused(f"{name}: row {at - 1} has {len(line)} cells, the header has {width}.")
    return [*line, *[""] * (width - len(line))]


def _type(cells: Sequence[str]) -> Type:
    """The narrowest type that holds every cell that is not empty."""
    said = [cell.strip() for cell in cells if cell.strip()]
    if not said or not all(REAL.fullmatch(cell) for cell in said):
        return Type.TEXT
    whole = all(INTEGER.fullmatch(cell) and isinstance(number(cell), int) for cell in said)
    return Type.INTEGER if whole else Type.REAL


def _cell(text: str, kind: Type) -> Cell:
    stripped = text.strip()
    if kind is Type.TEXT:
        return stripped or None
    if not stripped:
        return None
    return number(stripped) if kind is Type.INTEGER else _finite(stripped)


def _finite(text: str) -> float:
    """A finite float, also where the text says more than a float can."""
    return min(max(float(text), -1.7e308), 1.7e308)
