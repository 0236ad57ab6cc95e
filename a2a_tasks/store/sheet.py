"""Tasks as rows of a sheet: what lists and exports tell of each, without anything that was said beyond its opening."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec
from django.db.models import QuerySet

from a2a_tasks.models import Message, Run, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.selection import Selection, walk
from a2a_tasks.store.tasks import view

__all__ = [
    "COLUMNS",
    "csv_text",
    "json_text",
    "keys_of",
    "openings",
    "records",
    "sheet",
    "told",
    "whole",
]

COLUMNS = (
    *("key", "id", "state", "agent", "tenant", "owner", "maker", "context", "dialect", "binding"),
    *("created_at", "updated_at", "last_event", "opening"),
)
#: What is told of a run: not its token, which opens the task.
RUN = (
    *("id", "status", "attempt", "queue", "share", "worker", "created_at", "started_at"),
    *("ended_at", "error"),
)
Record = dict[str, Any]
#: A program for sheets takes a cell that begins so for a formula, and obeys it; some take the wide forms for the narrow ones.
_BEGINS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: Where a cell begins: also after what ends one where commas do not, and quotes after them are no quotes.
_FORMULA = re.compile(rf"^(?=[{_BEGINS}\t\r\n])|(?<=[;\r\n])(?=[{_BEGINS}])")


def openings(tasks: Collection[int]) -> dict[int, str]:
    """What each of these tasks began with, by primary keys; one read."""
    first = Message.objects.filter(task_id__in=tasks, number=1)
    return dict(first.values_list("task_id", "opening"))


def records(tasks: Collection[Task]) -> list[Record]:
    """What is told of each of these."""
    began = openings([task.pk for task in tasks])
    return [_record(task, began.get(task.pk, "")) for task in tasks]


def sheet(rows: QuerySet[Task], selection: Selection) -> Iterator[list[Record]]:
    """All that are meant, newest first, some at a time."""
    bare = rows.select_related("context").defer("status_message", "metadata", "memory", "run_token")
    for tasks in walk(bare, selection):
        yield records(tasks)


def whole(selection: Selection) -> Iterator[list[Record]]:
    """The same of all tenants, for who has the host's command line."""
    return sheet(Task.objects.all(), selection)


def told(task: int) -> dict[str, Any] | None:
    """What there is of the task with this primary key: its record, the task as its client sees it, and its runs."""
    row = Task.objects.select_related("context").filter(pk=task).first()
    if row is None:
        return None
    runs = Run.objects.filter(task=row).order_by("pk").values(*RUN)
    return {**records([row])[0], "task": view(row), "runs": list(runs)}


def keys_of(selection: Selection) -> Iterator[int]:
    """The primary keys alone."""
    for tasks in walk(Task.objects.only("pk"), selection):
        yield from (task.pk for task in tasks)


def csv_text(found: Iterable[Record], *, heading: bool = False) -> str:
    """Lines of CSV (RFC 4180). Strangers chose some of it, so that no cell begins as a formula does: that gets a quote."""
    out = io.StringIO()
    lines = csv.writer(out)
    if heading:
        lines.writerow(COLUMNS)
    lines.writerows([_cell(record[name]) for name in COLUMNS] for record in found)
    return out.getvalue()


def json_text(found: Iterable[Record]) -> str:
    """JSON, an object a line."""
    return "".join(f"{msgspec.json.encode(record).decode()}\n" for record in found)


def _record(task: Task, opening: str) -> Record:
    return {
        "key": task.pk,
        "id": task.public_id,
        "state": TaskState(task.state).word,
        "agent": task.agent,
        "tenant": task.tenant,
        "owner": task.owner,
        "maker": task.maker,
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
