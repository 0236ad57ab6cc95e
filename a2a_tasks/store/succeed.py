"""Successors of ended tasks: a new task under the same id, for dialects that allow this (decision 9).

The ended task stays unchanged, except that its id goes to the successor. It gets a new id, also in its messages. The
successor is in the same context, starts with the same memory, and names the old task in its metadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
from django.db.models import QuerySet

from a2a_tasks.models import Event, Message, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import PREDECESSOR, EventKind
from a2a_tasks.protocol.values import Raw
from a2a_tasks.store import hooks
from a2a_tasks.store.accept import begin
from a2a_tasks.store.backend.rows import update_rows
from a2a_tasks.store.backend.statements import LARGE, Bytes, allow_rows
from a2a_tasks.store.records import Accepted, NewTask

__all__ = ["succeed"]

#: Most rows that one statement changes; their bodies have at most LARGE bytes, unless it is a single one.
SLICE = 1000
#: Bytes that a row counts in addition to its body: to write many short ones takes long, too.
LEAST = 1024
_members = msgspec.json.Decoder(dict[str, Raw]).decode


def succeed(ended: Task, new: NewTask) -> Accepted:
    """Begin the successor of an ended task, in the transaction that has locked the ended task's row."""
    name = str(uuid.uuid4())
    _rename(ended, name)
    members = msgspec.json.decode(ended.metadata) if ended.metadata else {}
    metadata = write({**members, PREDECESSOR: name}).decode()
    new = replace(new, context_id=ended.context.public_id, metadata=metadata)
    accepted = begin(new)
    Task.objects.filter(pk=accepted.task).update(predecessor_id=ended.pk, memory=ended.memory)
    hooks.succeed(ended.pk, accepted.task)
    if accepted.claimed_run is None:
        return accepted
    return replace(accepted, claimed_run=replace(accepted.claimed_run, memory=ended.memory))


def _rename(task: Task, name: str) -> None:
    """Give a task another id, also in its messages; their other content does not change."""

    def message(text: bytes) -> bytes:
        return write({**_members(text), "taskId": name})

    def status(text: bytes) -> bytes:
        return _within(text, "message", message)

    def event(text: bytes) -> bytes:
        return _within(text, "status", status)

    status_message = task.status_message and message(task.status_message.encode()).decode()
    Task.objects.filter(pk=task.pk).update(public_id=name, status_message=status_message)
    _change(Message.objects.filter(task=task), message)
    _change(Event.objects.filter(task=task, kind=EventKind.STATUS), event)


def _change(rows: QuerySet[Any], change: Callable[[bytes], bytes]) -> None:
    """Change the bodies of these rows of one task, in statements of a bounded number of rows and bytes."""
    meta = rows.model._meta  # noqa: SLF001 - Django's documented interface
    fields = [meta.get_field(name) for name in ("task", "number", "body")]
    sizes = list(rows.order_by("number").values_list("number", Bytes("body")))
    with allow_rows(sum(size + LEAST for _, size in sizes)):
        for first, last in _cut(sizes):
            found = rows.filter(number__range=(first, last)).values_list(
                "task_id", "number", "body"
            )
            changed = [(*key, change(body.encode()).decode()) for *key, body in found]
            values = [list(column) for column in zip(*changed, strict=True)]
            update_rows(meta.db_table, fields, values, keys=2)


def _cut(sizes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each slice of rows; `sizes` has their numbers and bytes, in order."""
    part: list[int] = []
    room = LARGE
    for number, size in sizes:
        if part and (len(part) == SLICE or size > room):
            yield part[0], part[-1]
            part, room = [], LARGE
        part.append(number)
        room -= size
    if part:
        yield part[0], part[-1]


def _within(text: bytes, key: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a JSON object with one member changed, if it exists."""
    members = _members(text)
    return write({**members, key: Raw(change(members[key]))}) if key in members else text
