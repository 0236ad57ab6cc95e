"""Tasks as rows of lists and exports. Of the messages, a row has only the beginning of the first one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from a2a_console.search.selection import Selection, walk
from a2a_tasks.models import LONG_COLUMNS, Message, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.protocol.values import TaskState

__all__ = [
    "COLUMNS",
    "csv_text",
    "json_text",
    "keys_of",
    "openings",
    "records",
    "export_rows",
    "whole",
    "write_cells",
]

COLUMNS = (
    *("key", "id", "state", "agent", "tenant", "owner", "maker", "context", "dialect", "binding"),
    *("created_at", "updated_at", "last_event", "opening"),
)
Record = dict[str, Any]
#: Spreadsheet programs run a cell that begins with one of these as a formula; some accept the full-width forms, too.
_BEGINS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: Matches the begin of a formula: in a cell, and after `;` or a line break, which end a cell in some programs.
_FORMULA = re.compile(rf"^(?=[{_BEGINS}\t\r\n])|(?<=[;\r\n])(?=[{_BEGINS}])")


def openings(tasks: Collection[int]) -> dict[int, str]:
    """Return the beginning of each task's first message, by primary keys, in one query."""
    first = Message.objects.filter(task_id__in=tasks, number=1)
    return dict(first.values_list("task_id", "opening"))


def records(tasks: Collection[Task]) -> list[Record]:
    """Return the record of each of these tasks."""
    began = openings([task.pk for task in tasks])
    return [_record(task, began.get(task.pk, "")) for task in tasks]


def export_rows(rows: QuerySet[Task], selection: Selection) -> Iterator[list[Record]]:
    """Yield the records of all selected tasks, newest first, in slices."""
    bare = rows.select_related("context").defer(*LONG_COLUMNS)
    for tasks in walk(bare, selection):
        yield records(tasks)


def whole(selection: Selection) -> Iterator[list[Record]]:
    """Yield the records like `export_rows`, across tenants, for the command line of the host."""
    return export_rows(Task.objects.all(), selection)


def keys_of(selection: Selection) -> Iterator[int]:
    """Yield the primary keys of all selected tasks."""
    for tasks in walk(Task.objects.only("pk"), selection):
        yield from (task.pk for task in tasks)


def csv_text(found: Iterable[Record], *, heading: bool = False) -> str:
    """Return lines of CSV, with the names of the columns first if `heading`."""
    lines = ([record[name] for name in COLUMNS] for record in found)
    return "".join(map(write_cells, [COLUMNS, *lines] if heading else lines))


def write_cells(cells: Iterable[Any]) -> str:
    """Return a line of CSV (RFC 4180). A quote disarms formulas, since some of the text is untrusted."""
    out = io.StringIO()
    csv.writer(out).writerow(map(_cell, cells))
    return out.getvalue()


def json_text(found: Iterable[Record]) -> str:
    """Return JSON, one object per line."""
    return "".join(f"{on_one_line(write(record)).decode()}\n" for record in found)


def _record(task: Task, opening: str) -> Record:
    return {
        "key": task.pk,
        "id": task.public_id,
        "state": TaskState(task.state).word,
        "agent": task.agent,
        "tenant": task.tenant,
        "owner": task.owner,
        "maker": task.created_by,
        "context": task.context.public_id,
        "dialect": task.origin_dialect,
        "binding": task.origin_binding,
        "created_at": rfc3339(task.created_at),
        "updated_at": rfc3339(task.status_at),
        "last_event": task.last_event,
        "opening": opening,
    }


def _cell(value: Any) -> Any:
    return _FORMULA.sub("'", value) if isinstance(value, str) else value
