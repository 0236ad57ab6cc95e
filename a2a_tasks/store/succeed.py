"""Successors of ended tasks: a new task under the same id, for dialects that allow this (decision 9).

The ended task stays unchanged, except that its id goes to the successor. It gets a new id, also in its messages. The
successor is in the same context, starts with the same memory, and names the old task in its metadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import msgspec

from a2a_tasks.models import Event, Message, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import PREDECESSOR, EventKind
from a2a_tasks.protocol.values import Raw
from a2a_tasks.store import hooks
from a2a_tasks.store.accept import begin
from a2a_tasks.store.records import Accepted, NewTask

__all__ = ["succeed"]

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
    for number, body in Message.objects.filter(task=task).values_list("number", "body"):
        moved = message(body.encode()).decode()
        Message.objects.filter(task=task, number=number).update(body=moved)
    events = Event.objects.filter(task=task, kind=EventKind.STATUS)
    for number, body in events.values_list("number", "body"):
        events.filter(number=number).update(body=event(body.encode()).decode())


def _within(text: bytes, key: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a JSON object with one member changed, if it exists."""
    members = _members(text)
    return write({**members, key: Raw(change(members[key]))}) if key in members else text
