"""The statement by which each process looks once a second for the calls of agents that others may have left.

It begins with the tasks that have ended or asked lately, by the indexes of these states: its cost follows their number,
and not that of the calls that wait.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from a2a_tasks.models import AskPolicy, Delegation, Run, RunStatus, Task
from a2a_tasks.models.task import ENDED, WAITING
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.backend.statements import fetch

__all__ = [
    "ASKING",
    "BATCH",
    "CALLERS",
    "LOOKED_AT",
    "OVER",
    "Row",
    "filter_settled",
    "find",
    "find_next",
    "find_portably",
]

#: The kind of a row, the key of the calling task, and the number of the message of its turn.
Row = tuple[str, int, int]
#: The kinds of rows that concern callers, questions in callers, and turns that have ended.
CALLERS = frozenset({"a child has ended", "a child asks its caller"})
ASKING = frozenset({"a child asks", "a question stands", "a question is hidden"})
OVER = frozenset({"the turn has ended", "the turn asks"})
#: The kind of a row that tells how far a look has come.
LOOKED_AT = "looked at"
#: Maximum number of rows of a kind.
BATCH = 1000
UNFINISHED = [RunStatus.QUEUED, RunStatus.RUNNING]
#: The run of the calling turn, as long as it goes on.
_GOING = Run.objects.filter(
    task=OuterRef("parent"), input_number=OuterRef("input_number"), status__in=UNFINISHED
)
_COLUMNS = (
    *("id", "parent_id", "input_number", "questions", "relayed"),
    *("parent__state", "parent__is_task", "child__state", "child__is_task", "child__last_event"),
)

_ENDED, _WAITING = (
    ", ".join([f"'{TaskState(state).value}'" for state in each]) for each in (ENDED, WAITING)
)
_HAS_ENDED, _ASKS = f"t.state in ({_ENDED})", f"t.is_task and t.state in ({_WAITING})"
_LATELY = "t.status_at >= statement_timestamp() - interval '{seconds} seconds'"
#: The array lets the planner expect few tasks: it would read all open calls otherwise.
_CALLED = """join a2a_tasks_delegation d on d.child_id = t.id and d.open
  and d.child_id = any(array(select id from {name}))"""
#: Questions that do not stand yet, though they may, and those that replace one that stands.
_TO_RELAY = f"""{_CALLED} and d.questions = 'relay'
  join a2a_tasks_task p on p.id = d.parent_id
  and (d.relayed < t.last_event or (d.relayed is null and p.state not in ({_ENDED}, {_WAITING})))"""
_CALLS = """join a2a_tasks_delegation d on d.parent_id = t.id and d.open
  and d.parent_id = any(array(select id from {name}))
  and not exists (select from a2a_tasks_run r where r.task_id = d.parent_id
    and r.input_number = d.input_number and r.status in ('queued', 'running'))"""
#: The tasks of the last time are found first. With one statement a part, the planner may walk over all calls or tasks
#: instead, as long as its statistics are older than a burst of them: 650 ms with a million tasks.
_TASKS = """{name} as materialized (
  select t.id, t.state, t.last_event from a2a_tasks_task t where {state} and {lately})"""
_PART = "(select '{kind}', d.parent_id, d.input_number from {name} t {join} limit {most})"
_PARTS = (
    ("a child has ended", _CALLED, "ended"),
    ("a child asks its caller", f"{_CALLED} and d.questions = 'return'", "asking"),
    ("a child asks", _TO_RELAY, "asking"),
    ("the turn has ended", _CALLS, "ended"),
    ("the turn asks", _CALLS, "asking"),
)
#: Of the questions that stand, each look takes the next ones: there may be far more than change in a second.
_STANDING = f"""standing as materialized (
  select d.id, d.child_id, d.parent_id, d.input_number from a2a_tasks_delegation d
  where d.open and d.relayed is not null and d.id > %s order by d.id limit {BATCH})"""  # noqa: S608 - constants
#: A subquery for each of them: for a join the planner may read all tasks.
_STANDS = f"""(select 'a question stands', s.parent_id, s.input_number from standing s
  where (select t.state from a2a_tasks_task t where t.id = s.child_id) not in ({_WAITING}))
union all
(select '{LOOKED_AT}', max(id), 0 from standing having count(*) = {BATCH})"""  # noqa: S608 - constants


def find(recent: datetime.timedelta, after: int) -> list[Row]:
    """Return the rows of the last time, on PostgreSQL, which keeps the plan of the statement.

    Of the questions that stand, those after a key are looked at; a row LOOKED_AT has the key of the last one, if there
    may be more.
    """
    lately = _LATELY.format(seconds=recent.total_seconds())
    tasks = [
        _TASKS.format(name=name, state=state, lately=lately)
        for name, state in (("ended", _HAS_ENDED), ("asking", _ASKS))
    ]
    parts = [
        _PART.format(kind=kind, join=join.format(name=name), name=name, most=BATCH)
        for kind, join, name in _PARTS
    ]
    every = "\nunion all\n".join([*parts, _STANDS])
    return fetch(f"with {', '.join([*tasks, _STANDING])}\n{every}", [after])


def filter_settled(recent: datetime.timedelta) -> list[QuerySet[Task]]:
    """Return the tasks that have ended, and those that ask, in the last time."""
    lately = Task.objects.filter(status_at__gte=Now() - recent)
    return [lately.filter(state__in=ENDED), lately.filter(is_task=True, state__in=WAITING)]


def find_portably(recent: datetime.timedelta) -> list[Row]:
    """Return the same rows on any database."""
    calls = Delegation.objects.filter(open=True)
    ended, asks = filter_settled(recent)
    free = ~Q(parent__state__in=[*ENDED, *WAITING])
    to_relay = Q(relayed=None) & free | Q(relayed__lt=F("child__last_event"))
    found = {
        "a child has ended": calls.filter(child__in=ended),
        "a child asks its caller": calls.filter(questions=AskPolicy.RETURN, child__in=asks),
        "a child asks": calls.filter(to_relay, questions=AskPolicy.RELAY, child__in=asks),
        "the turn has ended": calls.filter(~Exists(_GOING), parent__in=ended),
        "the turn asks": calls.filter(~Exists(_GOING), parent__in=asks),
        "a question stands": calls.filter(relayed__isnull=False).exclude(child__state__in=WAITING),
    }
    return [
        (kind, parent, number)
        for kind, each in found.items()
        for parent, number in each.values_list("parent", "input_number")[:BATCH]
    ]


def find_next(after: int) -> list[Row]:
    """Return the rows of the next BATCH open calls after a key, however long ago they happened, and how far they reach."""
    calls = Delegation.objects.filter(open=True, pk__gt=after).order_by("pk")
    # For EXISTS the planner may read all unfinished runs.
    calls = calls.annotate(run=Subquery(_GOING.values("pk")[:1]))
    calls = calls.values_list(*_COLUMNS, "run", named=True)
    found = list(calls[:BATCH])
    rows: list[Row] = [
        (kind, call.parent_id, call.input_number) for call in found for kind in _list_kinds(call)
    ]
    return rows + [(LOOKED_AT, call.id, 0) for call in found[BATCH - 1 :]]


def _list_kinds(call: Any) -> Iterator[str]:
    """Yield the kinds of news of one call."""
    child, parent = call.child__state, call.parent__state
    asks, is_relayed = child in WAITING, call.relayed is not None
    is_free = parent not in {*ENDED, *WAITING}
    may_stand = call.relayed < call.child__last_event if is_relayed else is_free
    relays, is_over = call.questions == AskPolicy.RELAY, call.run is None
    told = {
        "a child has ended": child in ENDED,
        "a child asks its caller": asks and call.child__is_task and not relays,
        "a child asks": asks and call.child__is_task and relays and may_stand,
        "a question stands": is_relayed and not asks,
        # Its caller has said that it works: too many questions stand to look at each of them every second.
        "a question is hidden": is_relayed and asks and is_free,
        "the turn has ended": is_over and parent in ENDED,
        "the turn asks": is_over and parent in WAITING and call.parent__is_task,
    }
    return (kind for kind, holds in told.items() if holds)
