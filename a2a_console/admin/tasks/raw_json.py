"""The JSON of a task as a client gets it, in any dialect: shown up to a size, and as a download."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Sum

from a2a_console.admin.widgets.formatting import sendable
from a2a_console.excerpts import size
from a2a_console.site import page_url
from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol.dialects import CLASSES, DIALECTS, Dialect
from a2a_tasks.protocol.files import in_task
from a2a_tasks.store.tasks import find_by_key

__all__ = ["LARGEST", "RawAnswer", "dialect_of", "raw", "count_characters", "write_answer"]

#: The largest number of characters of JSON on the page.
SHOWN = 200_000
#: The largest tasks in characters that are serialized for the page, and for a download.
READ, LARGEST = 4_000_000, 100_000_000


@dataclass(frozen=True, kw_only=True)
class RawAnswer:
    """The context of the page."""

    dialect: Dialect
    dialects: list[tuple[str, str]]
    text: str
    #: Characters in all. Of a task that was not serialized, it is about the size of its stored bodies.
    size: int

    @property
    def is_cut(self) -> bool:
        """True if the page shows only a part."""
        return self.size > len(self.text)

    @property
    def is_savable(self) -> bool:
        """True if the task can be downloaded."""
        return self.size <= LARGEST


def dialect_of(code: str, task: Task) -> Dialect:
    """Return the dialect of this code; without a known code, the one in which the task was created."""
    return DIALECTS.get(code) or DIALECTS.get(task.origin_dialect) or DIALECTS["v10"]


def raw(task: Task, dialect: Dialect) -> RawAnswer:
    """Return the indented JSON of the task for the page, unless it is too long."""
    length = count_characters(task)
    text = "" if length > READ else sendable(_indent(write_answer(task, dialect)))
    return RawAnswer(
        dialect=dialect,
        dialects=[(cls.code, cls.title) for cls in reversed(CLASSES)],
        text=text[:SHOWN],
        size=len(text) or length,
    )


def write_answer(task: Task, dialect: Dialect) -> bytes:
    """Return the answer of GetTask, with the admin's own links to files; empty if the task is gone."""
    found = find_by_key(task.pk)
    if found is None:
        return b""
    base = page_url("a2a_tasks_task_change", task.pk).removesuffix("change/")
    view = in_task(found.view, lambda key: f"{base}files/{uuid.UUID(key)}/")
    return dialect.answer("GetTask", view)


def _indent(document: bytes) -> str:
    text = document.decode(errors="replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def count_characters(task: Task) -> int:
    """Return the number of characters in the stored bodies of the task."""
    artifacts = Artifact.objects.filter(task_id=task.pk)
    total = _sum(Message.objects.filter(task_id=task.pk)) + _sum(artifacts)
    grown = artifacts.filter(body="").order_by("first_event")
    first = grown.values_list("first_event", flat=True).first()
    if first is not None:
        total += _sum(Event.objects.filter(task_id=task.pk, number__gte=first))
    return total


def _sum(rows: QuerySet[Any]) -> int:
    found: int | None = rows.aggregate(total=Sum(size("body")))["total"]
    return found or 0
