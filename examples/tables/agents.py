"""An agent that answers SQL questions about a CSV file: as a text table, as data, and as a bar chart."""

from __future__ import annotations

import csv
import io
import math
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from xml.sax.saxutils import escape

from a2a_tasks.agents import Agent, Part, Skill, Turn, data, file
from a2a_tasks.agents.emission import Emission
from a2a_tasks.protocol.values import Role

TEXT, JSON, SVG = "text/plain", "application/json", "image/svg+xml"
MAX_FILE_BYTES, MAX_RESULT_CHARACTERS, MAX_ROWS, MAX_BARS = 1_000_000, 100_000, 200, 40
MAX_SECONDS, MAX_CELL_BYTES, MAX_PATTERN_BYTES = 2.0, 10_000, 100  # the last two keep steps short
#: Allowed actions of a question: no writing, no PRAGMA, no ATTACH, no recursion.
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
QUESTION = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
Rows = list[list[Any]]


class TablesAgent(Agent):
    name = "Tables"
    description = "Loads a CSV file and answers questions about it, asked as SQL."
    default_input_modes = (TEXT, "text/csv")
    default_output_modes = (TEXT, JSON, SVG)
    skills = (
        Skill(
            id="query",
            name="Query a CSV file",
            description="Answers a SELECT from the table `data`; draws bars if the last column has numbers.",
            tags=["chart", "csv", "data", "sql"],
            examples=["SELECT country, sum(population) AS people FROM data GROUP BY country"],
        ),
    )

    def run(self, turn: Turn) -> Iterator[Emission]:  # synchronous, so the host runs it in a thread
        """Answer the task's newest question about its newest file; ask for missing or corrected input."""
        try:
            columns, rows, more = answer(turn)
        except (csv.Error, sqlite3.Error, ValueError) as error:
            yield turn.ask(f"{error}. Send a CSV file with a header, and a SELECT from `data`.")
            return
        if turn.wants(TEXT):
            yield turn.artifact(text_table(columns, rows, more), name="table")
        if turn.wants(JSON):
            yield turn.artifact(data({"columns": columns, "rows": rows, "more": more}), name="rows")
        if turn.wants(SVG) and rows and all(isinstance(row[-1], int | float) for row in rows):
            chart = bar_chart(f"{columns[-1]} by {columns[0]}", rows[:MAX_BARS])
            yield turn.artifact(file(chart.encode(), "chart.svg", SVG), name="chart")


def answer(turn: Turn) -> tuple[list[str], Rows, bool]:
    """Return columns, rows, and whether there are more. Raises ValueError, csv.Error and sqlite3.Error."""
    parts = [part for said in turn.history.now() if said.role is Role.USER for part in said.parts]
    files = [part for part in parts if is_csv(part)]
    questions = [str(p.text) for p in parts if QUESTION.match(str(p.text)) and not is_csv(p)]
    if not files:
        raise ValueError("There is no CSV file yet")
    with closing(sqlite3.connect(":memory:")) as database:
        names = load(database, content_of(turn, files[-1]))
        if not questions:
            raise ValueError(f"The columns of `data` are {', '.join(names)}")
        return query(database, questions[-1], turn)


def is_csv(part: Part) -> bool:
    """Return whether a part has the type text/csv, or is a text of several lines without a question."""
    is_long = "\n" in str(part.text).strip() and not QUESTION.match(str(part.text))
    return is_long or (part.media_type or "").lower().startswith("text/csv")


def content_of(turn: Turn, part: Part) -> str:
    """Return the text of a CSV file. Raises ValueError, and FileUnavailable if its URL cannot be fetched."""
    content = part.text.encode() if isinstance(part.text, str) else turn.fetch(part).now()
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"The file has more than {MAX_FILE_BYTES:,} bytes")
    return content.decode("utf-8-sig")


def load(database: sqlite3.Connection, content: str) -> list[str]:
    """Fill the table `data`; return its columns. Raises ValueError, csv.Error and sqlite3.Error."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
    database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)
    delimiter = max(",;\t", key=content.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    header, *rows = [line for line in reader if line] or [[]]
    odd = next((n for n, row in enumerate(rows, 1) if len(row) != len(header)), None)
    if odd or not header:
        raise ValueError(f"Row {odd} is not as long as the header" if odd else "The file is empty")
    names = [name.strip() or f"column {number}" for number, name in enumerate(header, 1)]
    declared = ", ".join('"' + name.replace('"', '""') + '" NUMERIC' for name in names)
    database.execute(f"CREATE TABLE data ({declared})")
    fill = f"INSERT INTO data VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - question marks
    database.executemany(fill, ([cell.strip() or None for cell in row] for row in rows))
    return names


def query(database: sqlite3.Connection, sql: str, turn: Turn) -> tuple[list[str], Rows, bool]:
    """Execute a question for `answer`: read-only, and interrupted at the time limit or when the task is cancelled."""
    end, rows, characters = time.monotonic() + MAX_SECONDS, Rows(), 0
    database.set_progress_handler(lambda: turn.cancelled or time.monotonic() > end, 100)
    database.set_authorizer(lambda action, *_: int(action not in ALLOWED))  # 1 is SQLITE_DENY
    cursor = database.execute(sql)
    columns = [column[0] for column in cursor.description]
    for row in cursor:
        characters += len(repr(row))
        if len(rows) == MAX_ROWS or characters > MAX_RESULT_CHARACTERS:
            return columns, rows, True
        if any(isinstance(cell, bytes) or cell in (math.inf, -math.inf) for cell in row):
            raise ValueError("A cell of the result is a blob or infinite")
        rows.append(list(row))
    return columns, rows, False


def one_line(cell: Any, length: int) -> str:
    """Return the beginning of a cell, without line breaks and characters that XML does not allow."""
    shown = "" if cell is None else str(cell)[:length]
    return "".join(letter if letter.isprintable() else " " for letter in shown)


def text_table(columns: list[str], rows: Rows, more: bool) -> str:
    lines = [[one_line(cell, 60) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    shown = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([*shown, f"({len(rows)} rows{', and more' * more})"])


def bar_chart(title: str, rows: Rows) -> str:
    """Return an SVG with a bar for the last cell of each row, labelled by its first; negative bars are red."""
    largest = max(abs(row[-1]) for row in rows) or 1
    drawn = [f'<text y="20">{escape(one_line(title, 90))}</text>']
    for number, row in enumerate(rows, 2):
        y, width = 24 * number, 400 * (abs(row[-1]) / largest)
        colour = "#c0392b" if row[-1] < 0 else "#3b7dd8"
        drawn.append(
            f'<text y="{y}">{escape(one_line(row[0], 24))}</text>'
            f'<rect x="200" y="{y - 14}" width="{width:.1f}" height="18" fill="{colour}"/>'
            f'<text x="{206 + width:.1f}" y="{y}">{row[-1]}</text>'
        )
    about = f'width="760" height="{40 + 24 * len(rows)}" font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {about}>{"".join(drawn)}</svg>'
