"""Reading the log, and the events the host itself writes into it under the lock of the task row."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Aggregate, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from a2a_tasks.models import Artifact, Event, HandedSecret, Message, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded, advance
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.statements import Bytes
from a2a_tasks.store.folding import fold_behind
from a2a_tasks.store.records import LogPosition

__all__ = [
    "all_there_was",
    "find_first_number",
    "change_state",
    "last_numbers",
    "lock_task",
    "now",
    "read_after",
    "read_each",
    "read_pages",
    "record",
    "count_bytes",
    "state_at",
]

#: Read at once, in events and in bytes; a follower further behind comes again.
SLICE, SLICE_BYTES = 1000, 1024 * 1024


def now() -> datetime.datetime:
    """This moment, to the millisecond, as the protocol shows it: what is compared and what is read are equal."""
    moment = timezone.now()
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def read_each(after: Sequence[tuple[int, int]], limit: int, max_count: int) -> list[list[Recorded]]:
    """Of each task the events after its number, as `read_after` has them, but none after `max_count` bytes; one read for all.

    The first is read however large it is.
    """
    return backend().read_events_of_each(after, limit, max_count)


def read_after(
    task: int, number: int, limit: int = SLICE, max_count: int = SLICE_BYTES
) -> list[Recorded]:
    """Events of a task after a number, oldest first, at most `limit`, and none after `max_count` bytes.

    The first is read however large it is. If it is not the next one, those between were removed (see `find_first_number`).
    """
    return backend().read_events(task, number, limit, max_count)


def all_there_was(events: Sequence[Recorded]) -> bool:
    """Did a read end because the log did, not because the slice was full?"""
    return len(events) < SLICE and sum(event.size for event in events) < SLICE_BYTES


def last_numbers(tasks: Collection[int]) -> dict[int, int]:
    """The newest event's number of each task: what followers poll for, one query for all of them."""
    return dict(Task.objects.filter(pk__in=tasks).values_list("pk", "last_event"))


def find_first_number(task: int) -> int | None:
    """The number with which the log begins, since retention removes its oldest events; None if the task is gone.

    Its first row tells: nothing else has to agree with it. Of an empty log it is the number that would come next.
    """
    first = Event.objects.filter(task=OuterRef("pk")).order_by("number").values("number")[:1]
    rows = Task.objects.filter(pk=task).values_list(Subquery(first), "last_event")
    return next((last + 1 if number is None else number for number, last in rows), None)


def lock_task(*which: Q, skip: bool = False, **columns: object) -> Task | None:
    """The task row, locked until the transaction ends (SQLite locks the whole store by itself).

    Looked for twice: while the first look waited for the row, its id may have gone to a successor.
    `skip`: None also if somebody else has it locked at this moment.
    """
    tasks = Task.objects.filter(*which, **columns).select_related("context")
    tasks = tasks.select_for_update(of=("self",), skip_locked=skip)
    return tasks.first() or tasks.first()


def record(task: Task, kind: EventKind, body: str, *, role: str = "") -> Recorded:
    """Write one event of the host's own to a locked task. With a role, the body becomes a message of the history."""
    task.last_event += 1
    stored = "" if role else body
    state = TaskState(task.state) if kind is EventKind.STATUS else None
    Event.objects.create(
        task=task, number=task.last_event, kind=kind, state=state or "", body=stored
    )
    if role:
        Message.objects.create(task=task, number=task.last_event, role=role, body=body)
    task.save(
        update_fields=["last_event", "state", "status_at", "status_message", "run_token", "is_task"]
    )
    return Recorded(number=task.last_event, kind=kind, body=body, state=state)


def change_state(
    task: Task, state: TaskState, *, at: datetime.datetime, message: str = ""
) -> Recorded:
    """Move a locked task along the life-cycle table, with its event. Raises IllegalTransition.

    A terminal state takes the task from its run; what artifacts there are is folded afterwards.
    """
    task.state = advance(TaskState(task.state), state)
    task.status_at, task.status_message = at, message
    if state in TERMINAL:
        task.run_token = ""
        HandedSecret.objects.filter(task=task).exclude(sealed="", token_hash="").update(
            sealed="", token_hash=""
        )
        task.is_task = True  # whoever waited for its first word is told of a task
        fold_behind(task.pk, task.last_event)
    return record(task, EventKind.STATUS, status_body(state, at, message))


def status_body(state: TaskState, at: datetime.datetime, message: str = "") -> str:
    """The body of a status event; `message` is JSON."""
    member = f',"message":{message}' if message else ""
    return f'{{"status":{{"state":{write(state).decode()}{member},"timestamp":"{rfc3339(at)}"}}}}'


def read_pages(
    pages: Sequence[LogPosition], *, limit: int, max_bytes: int, longest: int
) -> list[list[Recorded]]:
    """Read the next `limit` events of each page, but none after `max_bytes`; one read for all.

    The body of an event is empty if it has more than `longest` bytes, or is a message, which has a row of its own. So a
    task is measured before it is read, and a body that is too large is never loaded.
    """
    if not pages:
        return []
    asked = list(dict.fromkeys(pages))
    found = backend().read_pages(asked, limit=limit, max_bytes=max_bytes, longest=longest)
    events = dict(zip(asked, found, strict=True))
    return [events[page] for page in pages]


def count_bytes(task: int) -> int:
    """Return the bytes of a task's artifacts and history. A growing artifact counts as all pieces since it began.

    It is one statement: an artifact that is folded between two statements would count twice.
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
    """Return the state of a task at the event of that number, and the time of that state; None if there was none."""
    states = Event.objects.filter(task=task, kind=EventKind.STATUS, number__lte=number)
    last = states.order_by("-number").values_list("state", "created_at").first()
    return None if last is None else (TaskState(last[0]), last[1])
