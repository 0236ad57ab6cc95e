"""Reading the log for followers that send it on: only the events they need, and no texts that are too long.

A task is measured before it is read: what is too large is never loaded.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Aggregate, Func, IntegerField, Min, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from a2a_tasks.models import Artifact, Event, Message, Task
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, Recorded
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.sql import fetch

__all__ = ["ALL", "ENDS", "STATES", "After", "read_each", "state_at", "stored_bytes"]

#: Which events are read: all, changes of the status, or those that end the task or wait for the client.
ALL, STATES, ENDS = 0, 1, 2


class After(NamedTuple):
    """Where a page begins, and what it has."""

    task: int
    number: int
    which: int = ALL


_ENDS = ", ".join(f"'{state.value}'" for state in sorted(TERMINAL | INTERRUPTED))
_WHICH = f"({{which}} = {ALL} or e.kind = {EventKind.STATUS:d} and ({{which}} = {STATES} or e.state in ({_ENDS})))"

READ_EACH = f"""
select i.n, p.number, p.kind, p.state, p.run, p.body
from unnest(%(n)s::int[], %(task)s::bigint[], %(number)s::int[], %(which)s::int[]) as i(n, task, number, which)
cross join lateral (
  select o.*, sum(octet_length(o.body)) over (order by o.number) - octet_length(o.body) as before
  from (
    select e.number, e.kind, e.state, e.run,
      case when octet_length(e.body) > %(longest)s then '' else e.body end as body
    from a2a_tasks_event e
    where e.task_id = i.task and e.number > i.number and {_WHICH.format(which="i.which")}
    order by e.number limit %(limit)s
  ) o
) p
where p.before < %(most)s
order by i.n, p.number
"""  # noqa: S608 - constants of ours

READ_ONE = f"""
select e.number, e.kind, e.state, e.run,
  case when length(cast(e.body as blob)) > %s then '' else e.body end
from a2a_tasks_event e
where e.task_id = %s and e.number > %s and {_WHICH.format(which="%s")}
order by e.number limit %s
"""  # noqa: S608


def read_each(
    after: Sequence[After], *, limit: int, most: int, longest: int
) -> list[list[Recorded]]:
    """Of each task the next `limit` events, but none after `most` bytes; one read for all.

    The body of an event is empty if it has more than `longest` bytes, or is a message, which has a row of its own.
    """
    if not after:
        return []
    pages = list(dict.fromkeys(after))
    if connection.vendor == "postgresql":
        found = _read_together(pages, limit, most, longest)
    else:
        found = [_read_one(page, limit, most, longest) for page in pages]
    events = dict(zip(pages, found, strict=True))
    return [events[page] for page in after]


def _read_together(
    pages: Sequence[After], limit: int, most: int, longest: int
) -> list[list[Recorded]]:
    names = ("n", *After._fields)
    columns = zip(*((n, *page) for n, page in enumerate(pages)), strict=True)
    values = dict(zip(names, map(list, columns), strict=True))
    bounds = {"limit": limit, "most": most, "longest": longest}
    found: list[list[Recorded]] = [[] for _ in pages]
    for n, *row in fetch(READ_EACH, values | bounds):
        found[n].append(_recorded(row))
    return found


def _read_one(page: After, limit: int, most: int, longest: int) -> list[Recorded]:
    """The same of one task, from a database that gives row by row."""
    found: list[Recorded] = []
    with connection.cursor() as cursor:
        values = [longest, page.task, page.number, page.which, page.which, limit]
        cursor.execute(READ_ONE, values)
        for row in cursor:
            found.append(_recorded(row))
            most -= len(found[-1].body.encode())
            if most <= 0:
                break
    return found


def _recorded(row: Sequence[Any]) -> Recorded:
    number, kind, state, run, body = row
    return Recorded(
        number=number,
        kind=EventKind(kind),
        state=TaskState(state) if state else None,
        run=run,
        body=body,
    )


class _Bytes(Func):
    """The length in bytes; PostgreSQL tells it without reading the text."""

    function = "octet_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="length(cast(%(expressions)s as blob))", **more
        )


def stored_bytes(task: int) -> int:
    """How many bytes of artifacts and history a task has; an artifact that still grows counts as all pieces since it began.

    One statement: an artifact that is folded between two would count as its pieces and as itself.
    """
    artifacts, events = Artifact.objects.filter(task=task), Event.objects.filter(task=task)
    begun = _of_all(artifacts.filter(body=""), Min("first_event"))
    pieces = events.filter(kind=EventKind.ARTIFACT, number__gte=Subquery(begun))
    texts = (artifacts, Message.objects.filter(task=task), pieces)
    sums = [Coalesce(Subquery(_of_all(rows, Sum(_Bytes("body")))), 0) for rows in texts]
    found = Task.objects.filter(pk=task).values_list(sums[0] + sums[1] + sums[2], flat=True)
    return found.first() or 0


def _of_all(rows: QuerySet[Any], value: Aggregate) -> Any:
    return rows.order_by().values("task").annotate(value=value).values("value")


def state_at(task: int, number: int) -> tuple[TaskState, datetime.datetime] | None:
    """The state of a task at the event of that number, and since when; None if none was written until then."""
    states = Event.objects.filter(task=task, kind=EventKind.STATUS, number__lte=number)
    last = states.order_by("-number").values_list("state", "created_at").first()
    return None if last is None else (TaskState(last[0]), last[1])
