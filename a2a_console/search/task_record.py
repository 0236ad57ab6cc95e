"""Tasks as rows of lists, exports and the API. Of the messages, a row has only the beginning of the first one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from a2a_console.search.selection import Selection, walk
from a2a_console.times import MomentField
from a2a_tasks.models import LONG_COLUMNS, Message, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import on_one_line, write
from a2a_tasks.protocol.values import TaskState

__all__ = [
    "COLUMNS",
    "STATES",
    "StateField",
    "TaskLineSerializer",
    "add_openings",
    "csv_text",
    "json_text",
    "keys_of",
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
STATES = [state.word for state in TaskState]
#: Spreadsheet programs run a cell that begins with one of these as a formula; some accept the full-width forms, too.
_BEGINS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
#: Matches the begin of a formula: in a cell, and after `;` or a line break, which end a cell in some programs.
_FORMULA = re.compile(rf"^(?=[{_BEGINS}\t\r\n])|(?<=[;\r\n])(?=[{_BEGINS}])")


class StateField(serializers.ChoiceField):
    """A state of a task in one word; null for anything else."""

    def __init__(self, **options: Any) -> None:
        super().__init__(STATES, **options)

    def to_representation(self, value: Any) -> str | None:  # type: ignore[override] # null of events
        """Return the word."""
        return TaskState(value).word if value in set(TaskState) else None


class TaskLineSerializer(serializers.Serializer[Any]):
    """A task in a list."""

    key = serializers.IntegerField(source="pk", help_text="Number of the task in this host.")
    id = serializers.CharField(
        source="public_id", help_text="The task's id, as its client knows it."
    )
    agent = serializers.CharField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    context = serializers.CharField(source="context.public_id")  # type: ignore[assignment] # DRF takes fields off the class
    context_key = serializers.IntegerField(source="context_id")
    state = StateField()
    maker = serializers.CharField(
        source="created_by",
        help_text="The principal that created the task, if that is not the owner.",
    )
    opening = serializers.SerializerMethodField(
        help_text="The beginning of the text of the first message, on one line."
    )
    binding = serializers.CharField(
        source="origin_binding",
        help_text="The binding of the task's first message: `JSONRPC`, `HTTP+JSON` or `GRPC`; of a door `mcp`, `openai` or `ag-ui`. Empty: an operator ran a task again.",
    )
    dialect = serializers.CharField(
        source="origin_dialect", help_text="The dialect in which the task was created."
    )
    is_task = serializers.BooleanField(
        help_text="False: the task was answered by a direct Message, or may still be."
    )
    created_at = MomentField()
    updated_at = MomentField(source="status_at", help_text="Time of the last change of the status.")
    last_event = serializers.IntegerField(help_text="Number of the task's newest event.")

    def get_opening(self, task: Task) -> str:
        """The beginning of the first message, which `add_openings` has read."""
        return str(getattr(task, "opening", ""))


def add_openings(tasks: list[Task]) -> list[Any]:
    """Return the tasks, each with the `opening` of its first message, by one query."""
    first = Message.objects.filter(task_id__in=[task.pk for task in tasks], number=1)
    began = dict(first.values_list("task_id", "opening"))
    for task in tasks:
        task.opening = began.get(task.pk, "")  # type: ignore[attr-defined]
    return tasks


def records(tasks: list[Task]) -> list[Record]:
    """Return the record of each of these tasks."""
    return list(map(_record, TaskLineSerializer(add_openings(tasks), many=True).data, tasks))


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


def _record(row: Mapping[str, Any], task: Task) -> Record:
    moments = {"created_at": rfc3339(task.created_at), "updated_at": rfc3339(task.status_at)}
    return {name: moments.get(name, row[name]) for name in COLUMNS}


def _cell(value: Any) -> Any:
    return _FORMULA.sub("'", value) if isinstance(value, str) else value
