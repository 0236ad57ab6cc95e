"""A task as a client gets it, in any dialect: JSON to read, up to a size, and to save."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Sum
from django.urls import reverse

from a2a_tasks.admin.shown import sendable, size
from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol.dialects import CLASSES, DIALECTS, Dialect
from a2a_tasks.protocol.files import in_task
from a2a_tasks.store.tasks import find_by_key

__all__ = ["LARGEST", "Raw", "dialect_of", "raw", "stored", "written"]

#: Characters of the JSON on the page.
SHOWN = 200_000
#: A task with more characters than these is not put together for the page, and not for saving.
READ, LARGEST = 4_000_000, 100_000_000


@dataclass(frozen=True, kw_only=True)
class Raw:
    """What the page shows."""

    dialect: Dialect
    dialects: list[tuple[str, str]]
    text: str
    #: Characters in all; what is not shown was not put together, and the size is about that of what is stored.
    size: int

    @property
    def is_cut(self) -> bool:
        """Is there more than is shown?"""
        return self.size > len(self.text)

    @property
    def is_savable(self) -> bool:
        """Can all of it be had?"""
        return self.size <= LARGEST


def dialect_of(code: str, task: Task) -> Dialect:
    """The dialect asked for; without a word the one the task was made in."""
    return DIALECTS.get(code) or DIALECTS.get(task.origin_dialect) or DIALECTS["v10"]


def raw(task: Task, dialect: Dialect) -> Raw:
    """The task for the page, indented, as far as it is not too long."""
    length = stored(task)
    text = "" if length > READ else sendable(_indented(written(task, dialect)))
    return Raw(
        dialect=dialect,
        dialects=[(cls.code, cls.title) for cls in reversed(CLASSES)],
        text=text[:SHOWN],
        size=len(text) or length,
    )


def written(task: Task, dialect: Dialect) -> bytes:
    """What GetTask answers, with the admin's own links to files; empty if the task is gone."""
    found = find_by_key(task.pk)
    if found is None:
        return b""
    base = reverse("admin:a2a_tasks_task_change", args=[task.pk]).removesuffix("change/")
    view = in_task(found.view, lambda key: f"{base}files/{uuid.UUID(key)}/")
    return dialect.answer("GetTask", view)


def _indented(document: bytes) -> str:
    text = document.decode(errors="replace")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def stored(task: Task) -> int:
    """Characters of what it is put together of."""
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
