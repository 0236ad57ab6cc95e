"""Reading the log, and the events the host itself writes into it under the lock of the task row."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone

from a2a_tasks.models import Event, HandedSecret, Message, Task
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import TERMINAL, EventKind, Recorded, advance
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.folding import fold_behind
from a2a_tasks.store.sql import fetch

__all__ = [
    "all_there_was",
    "beginning",
    "change_state",
    "last_numbers",
    "locked",
    "now",
    "read_after",
    "read_each",
    "record",
]

#: Read at once, in events and in bytes; a follower further behind comes again.
SLICE, SLICE_BYTES = 1000, 1024 * 1024

READ_AFTER = """
select e.number, e.kind, e.state, e.run, case when e.body = '' then m.body else e.body end
from a2a_tasks_event e
left join a2a_tasks_message m on m.task_id = e.task_id and m.number = e.number and e.body = ''
where e.task_id = %s and e.number > %s order by e.number limit %s
"""
#: The same up to a number of bytes. What is beyond it stays in the server: only its length is looked at.
READ_WITHIN = f"""
select number, kind, state, run, body from (
  select o.*, coalesce(sum(octet_length(o.body)) over (
    order by o.number rows between unbounded preceding and 1 preceding), 0) as before
  from ({READ_AFTER}) o(number, kind, state, run, body)
) e
where before < %s order by number
"""  # noqa: S608 - a constant


def now() -> datetime.datetime:
    """This moment, to the millisecond, as the protocol shows it: what is compared and what is read are equal."""
    moment = timezone.now()
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


READ_EACH = """
select i.n, e.number, e.kind, e.state, e.run, e.body
from unnest(%(n)s::int[], %(task)s::bigint[], %(number)s::int[]) as i(n, task, number)
cross join lateral (
  select l.*, sum(l.size) over (order by l.number) - l.size as before
  from (
    select o.*, coalesce(octet_length(o.body), 0) as size
    from (
      select e.number, e.kind, e.state, e.run, case when e.body = '' then m.body else e.body end as body
      from a2a_tasks_event e
      left join a2a_tasks_message m on m.task_id = e.task_id and m.number = e.number and e.body = ''
      where e.task_id = i.task and e.number > i.number order by e.number limit %(limit)s
    ) o
  ) l
) e
where e.before < %(most)s
order by i.n, e.number
"""


def read_each(after: Sequence[tuple[int, int]], limit: int, most: int) -> list[list[Recorded]]:
    """Of each task the events after its number, as `read_after` has them, but none after `most` bytes; one read for all.

    The first is read however large it is.
    """
    if connection.vendor != "postgresql":
        return [_read_within(task, number, limit, most) for task, number in after]
    tasks, numbers = [task for task, _ in after], [number for _, number in after]
    values = {"n": list(range(len(after))), "task": tasks, "number": numbers}
    found: list[list[Recorded]] = [[] for _ in after]
    for n, *row in fetch(READ_EACH, values | {"limit": limit, "most": most}) if after else ():
        found[n].append(_recorded(row))
    return found


def _read_within(task: int, number: int, limit: int, most: int) -> list[Recorded]:
    """The same of one task, from a database that gives row by row."""
    found: list[Recorded] = []
    with connection.cursor() as cursor:
        cursor.execute(READ_AFTER, [task, number, limit])
        for row in cursor:
            found.append(_recorded(row))
            most -= found[-1].size
            if most <= 0:
                break
    return found


def read_after(
    task: int, number: int, limit: int = SLICE, most: int = SLICE_BYTES
) -> list[Recorded]:
    """Events of a task after a number, oldest first, at most `limit`, and none after `most` bytes.

    The first is read however large it is. If it is not the next one, those between were removed (see `beginning`).
    """
    if connection.vendor != "postgresql":
        return _read_within(task, number, limit, most)
    return [_recorded(row) for row in fetch(READ_WITHIN, [task, number, limit, most])]


def all_there_was(events: Sequence[Recorded]) -> bool:
    """Did a read end because the log did, not because the slice was full?"""
    return len(events) < SLICE and sum(event.size for event in events) < SLICE_BYTES


def _recorded(row: Sequence[Any]) -> Recorded:
    number, kind, state, run, body = row
    return Recorded(
        number=number,
        kind=EventKind(kind),
        state=TaskState(state) if state else None,
        run=run,
        body=body,
    )


def last_numbers(tasks: Collection[int]) -> dict[int, int]:
    """The newest event's number of each task: what followers poll for, one query for all of them."""
    return dict(Task.objects.filter(pk__in=tasks).values_list("pk", "last_event"))


def beginning(task: int) -> int | None:
    """The number with which the log begins, since retention removes its oldest events; None if the task is gone.

    Its first row tells: nothing else has to agree with it. Of an empty log it is the number that would come next.
    """
    first = Event.objects.filter(task=OuterRef("pk")).order_by("number").values("number")[:1]
    rows = Task.objects.filter(pk=task).values_list(Subquery(first), "last_event")
    return next((last + 1 if number is None else number for number, last in rows), None)


def locked(*which: Q, skip: bool = False, **columns: object) -> Task | None:
    """The task row, locked until the transaction ends (SQLite locks the whole store by itself).

    Looked for twice: while the first look waited for the row, its id may have gone to a successor.
    `skip`: None also if somebody else has it locked at this moment.
    """
    tasks = Task.objects.filter(*which, **columns).select_related("context")
    if connection.vendor != "postgresql":
        return tasks.first()
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
    said = f',"message":{message}' if message else ""
    return f'{{"status":{{"state":{write(state).decode()}{said},"timestamp":"{rfc3339(at)}"}}}}'
