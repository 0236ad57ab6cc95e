"""Carrying out a statement: a SQLite database in memory, made for one question, read-only and short of time."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from examples.tables.faults import Refused
from examples.tables.statement import Statement
from examples.tables.table import Cell, Table

__all__ = ["Result", "carry_out"]

MOST_ROWS = 200
LONGEST_SECONDS = 2.0
#: So many steps of SQLite's machine between two looks at the clock.
STEPS = 5_000
#: What a question may do once the table is filled.
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}


@dataclass(frozen=True, slots=True)
class Result:
    """An answer: named columns, rows, and whether there would have been more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool = False


def carry_out(
    statement: Statement,
    table: Table,
    *,
    stopped: Callable[[], bool] = lambda: False,
    most_rows: int = MOST_ROWS,
    seconds: float = LONGEST_SECONDS,
) -> Result:
    """Run the statement on the table. Raises Refused when it takes too long, is `stopped`, or overflows."""
    with _database(table) as database:
        deadline = time.monotonic() + seconds
        # A handler that returns true interrupts the statement.
        database.set_progress_handler(lambda: stopped() or time.monotonic() > deadline, STEPS)
        database.set_authorizer(_reading_only)
        try:
            cursor = database.execute(statement.sql, statement.parameters)
            rows = cursor.fetchmany(most_rows + 1)
        except sqlite3.OperationalError as fault:
            raise _refusal(fault, seconds) from None
    _check_finite(rows)
    return Result(statement.columns, tuple(rows[:most_rows]), len(rows) > most_rows)


def _reading_only(action: int, *about: object) -> int:
    """A second lock on the door: the statement builder makes nothing but SELECTs anyway."""
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


@contextmanager
def _database(table: Table) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        columns = ", ".join(f'"c{at}" {c.type.value}' for at, c in enumerate(table.columns))
        marks = ", ".join("?" * len(table.columns))
        database.execute(f'CREATE TABLE "t" ({columns})')
        database.execute("BEGIN")
        database.executemany(f'INSERT INTO "t" VALUES ({marks})', table.rows)  # noqa: S608 - only question marks
        database.execute("COMMIT")
        yield database


def _refusal(fault: sqlite3.OperationalError, seconds: float) -> Refused:
    if fault.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
        return Refused(f"The question took longer than {seconds:g} seconds.")
    return Refused(f"The numbers are too large ({fault}).")


def _check_finite(rows: list[tuple[Cell, ...]]) -> None:
    """JSON has no infinity, so a sum that became one is told as what it is."""
    for row in rows:
        if any(isinstance(cell, float) and not math.isfinite(cell) for cell in row):
            raise Refused("The numbers are too large.")
