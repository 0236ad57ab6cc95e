"""Reads of the event log, and the events that the host itself writes under the lock of the task row."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.db.models import Aggregate, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from a2a_tasks.models import Artifact, Event, HandedSecret, Message, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, LogEvent, advance
from a2a_tasks.protocol.titles import title_of
from a2a_tasks.protocol.values import Part, TaskState
from a2a_tasks.store import clock
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.statements import Bytes
from a2a_tasks.store.folding import fold_behind
from a2a_tasks.store.records import LogPosition

__all__ = [
    "all_there_was",
    "find_first_number",
    "find_other_ends",
    "change_state",
    "lock_task",
    "now",
    "read_after",
    "read_pages",
    "read_tool_bodies",
    "record",
    "count_bytes",
    "state_at",
]

#: Maximum number of events of one read, and their bytes; a reader that is further behind reads again.
SLICE, SLICE_BYTES = 1000, 1024 * 1024


class _Content(msgspec.Struct):
    """The members of a message that its text comes from."""

    parts: tuple[Part, ...] = ()


def now() -> datetime.datetime:
    """Return the current time in milliseconds, as the protocol shows it, so that stored and shown times are equal."""
    milliseconds = int(clock.estimate() * 1000)
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)


def read_after(
    task: int, number: int, limit: int = SLICE, max_count: int = SLICE_BYTES
) -> list[LogEvent]:
    """Return events of a task after a number, oldest first: at most `limit`, and none after `max_count` bytes.

    The first event is read even if it is larger. If it is not the next number, the events between were removed (see
    `find_first_number`).
    """
    return backend().read_events(task, number, limit, max_count)


def all_there_was(events: Sequence[LogEvent]) -> bool:
    """Return whether a read reached the end of the log, and was not ended by the limits of a slice."""
    return len(events) < SLICE and sum(event.size for event in events) < SLICE_BYTES


def find_other_ends(known: Mapping[int, int]) -> dict[int, int | None]:
    """Return the newest events of those tasks for which it is not the known one; None = the task is gone.

    Readers poll with it, in one query that is as cheap for 1,000 quiet tasks as a single row.
    """
    return backend().find_other_ends(known)


def find_first_number(task: int) -> int | None:
    """Return the number of the first event in the log, of which retention removes the oldest; None if the task is gone.

    It is read from the log's first row, so that no other value has to agree with it. For an empty log it is the next
    number.
    """
    first = Event.objects.filter(task=OuterRef("pk")).order_by("number").values("number")[:1]
    rows = Task.objects.filter(pk=task).values_list(Subquery(first), "last_event")
    return next((last + 1 if number is None else number for number, last in rows), None)


def lock_task(*which: Q, skip: bool = False, **columns: object) -> Task | None:
    """Return the task row, locked until the transaction ends (SQLite locks the whole store by itself).

    If the query finds nothing, it runs once more: while the first one waited for the row, a successor may have taken
    over its id. `skip`: return None as well if another transaction has locked the row.
    """
    tasks = Task.objects.filter(*which, **columns).select_related("context")
    tasks = tasks.select_for_update(of=("self",), skip_locked=skip)
    return tasks.first() or tasks.first()


def record(
    task: Task, kind: EventKind, body: str, *, role: str = "", run: int | None = None
) -> LogEvent:
    """Write one event of the host to a locked task, in the name of a `run` if it belongs to its turn.

    With a role, the body becomes a message of the history.
    """
    task.last_event += 1
    stored = "" if role else body
    state = TaskState(task.state) if kind is EventKind.STATUS else None
    Event.objects.create(
        task=task, number=task.last_event, kind=kind, state=state or "", body=stored, run=run
    )
    if role:
        Message.objects.create(task=task, number=task.last_event, role=role, body=body)
    changed = ("last_event", "state", "status_at", "status_message", "status_text", "run_token")
    task.save(update_fields=[*changed, "is_task"])
    return LogEvent(number=task.last_event, kind=kind, body=body, state=state, run=run)


def change_state(
    task: Task,
    state: TaskState,
    *,
    at: datetime.datetime,
    message: str = "",
    run: int | None = None,
) -> LogEvent:
    """Change the state of a locked task by the life-cycle table, and write the event. Raises IllegalTransition.

    A terminal state takes the task from its run, and its artifacts are folded after the commit.
    """
    task.state = advance(TaskState(task.state), state)
    task.status_at, task.status_message = at, message
    task.status_text = (
        title_of(msgspec.json.decode(message, type=_Content).parts) if message else ""
    )
    task.is_task = True  # a client that waits for the first answer gets a task
    if state in TERMINAL:
        task.run_token = ""
        HandedSecret.objects.filter(task=task).exclude(sealed="", token_hash="").update(
            sealed="", token_hash=""
        )
        fold_behind(task.pk, task.last_event)
    return record(task, EventKind.STATUS, status_body(state, at, message), run=run)


def status_body(state: TaskState, at: datetime.datetime, message: str = "") -> str:
    """Return the body of a status event; `message` is JSON."""
    member = f',"message":{message}' if message else ""
    return f'{{"status":{{"state":{write(state).decode()}{member},"timestamp":"{rfc3339(at)}"}}}}'


def read_pages(
    pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
) -> list[list[LogEvent]]:
    """Return the next `limit` events of each page, up to `max_bytes` of each, but at least one; one query for all pages.

    The body of an event is empty if it has more than `longest` bytes, or if it is a message, which has a row of its own.
    So a body that is too large is never loaded.
    """
    if not pages:
        return []
    distinct = list(dict.fromkeys(pages))
    found = backend().read_pages(distinct, limit=limit, max_bytes=max_bytes, longest=longest)
    events = dict(zip(distinct, found, strict=True))
    return [events[page] for page in pages]


def read_tool_bodies(task: int) -> list[tuple[int, str]]:
    """Return the numbers and bodies of the events of tools in the log of a task."""
    events = Event.objects.filter(task=task, kind=EventKind.TOOL)
    return list(events.order_by("number").values_list("number", "body"))


def count_bytes(task: int) -> int:
    """Return the bytes of a task's artifacts and history. A growing artifact counts with all its pieces.

    There is only one statement: an artifact that is folded between two statements would count twice.
    """
    artifacts, events = Artifact.objects.filter(task=task), Event.objects.filter(task=task)
    begun = _of_all(artifacts.filter(body=""), Min("first_event"))
    pieces = events.filter(kind=EventKind.ARTIFACT, number__gte=Subquery(begun))
    texts = (artifacts, Message.objects.filter(task=task), pieces)
    sums = [Coalesce(Subquery(_of_all(rows, Sum(Bytes("body")))), 0) for rows in texts]
    found = Task.objects.filter(pk=task).values_list(sums[0] + sums[1] + sums[2], flat=True)
    return found.first() or 0


def _of_all(rows: QuerySet[Any], value: Aggregate) -> Any:
    return rows.order_by().values("task").annotate(value=value).values("value")


def state_at(task: int, number: int) -> tuple[TaskState, datetime.datetime] | None:
    """Return the state of a task at the event with this number, and the time of that state; None if it had no state yet."""
    states = Event.objects.filter(task=task, kind=EventKind.STATUS, number__lte=number)
    last = states.order_by("-number").values_list("state", "created_at", named=True).first()
    return None if last is None else (TaskState(last.state), last.created_at)
