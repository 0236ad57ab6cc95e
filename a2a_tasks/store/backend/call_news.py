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
from a2a_tasks.store.backend.server import is_server
from a2a_tasks.store.backend.statements import fetch, write_states
from a2a_tasks.store.sql_files import read_sql

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
]

#: The kind of a row, the key of the calling task, and the number of the message of its turn.
Row = tuple[str, int, int]
#: The kinds of rows that concern callers, questions in callers, and turns that are over.
CALLERS = frozenset({"a child has ended", "a child asks its caller"})
ASKING = frozenset({"a child asks", "a question stands", "a question is hidden"})
OVER = "the turn is over"
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

FIND = read_sql("find_call_news", ended=write_states(ENDED), waiting=write_states(WAITING))


def find(recent: datetime.timedelta, after: int) -> list[Row]:
    """Return the rows of the last time. PostgreSQL keeps the plan of the statement.

    Of the questions that stand, those after a key are looked at; a row LOOKED_AT has the key of the last one, if there
    may be more. SQLite looks at all of them.
    """
    if not is_server():
        return _find_portably(recent)
    return fetch(FIND, {"recent": recent.total_seconds(), "after": after, "most": BATCH})


def filter_settled(recent: datetime.timedelta) -> list[QuerySet[Task]]:
    """Return the tasks that have ended, and those that ask, in the last time."""
    lately = Task.objects.filter(status_at__gte=Now() - recent)
    return [lately.filter(state__in=ENDED), lately.filter(is_task=True, state__in=WAITING)]


def _find_portably(recent: datetime.timedelta) -> list[Row]:
    calls = Delegation.objects.filter(open=True)
    ended, asks = filter_settled(recent)
    free = ~Q(parent__state__in=[*ENDED, *WAITING])
    to_relay = Q(relayed=None) & free | Q(relayed__lt=F("child__last_event"))
    found = {
        "a child has ended": calls.filter(child__in=ended),
        "a child asks its caller": calls.filter(questions=AskPolicy.RETURN, child__in=asks),
        "a child asks": calls.filter(to_relay, questions=AskPolicy.RELAY, child__in=asks),
        OVER: calls.filter(Q(parent__in=ended) | Q(parent__in=asks), ~Exists(_GOING)),
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
    relays = call.questions == AskPolicy.RELAY
    is_over = parent in ENDED or (parent in WAITING and call.parent__is_task)
    told = {
        "a child has ended": child in ENDED,
        "a child asks its caller": asks and call.child__is_task and not relays,
        "a child asks": asks and call.child__is_task and relays and may_stand,
        "a question stands": is_relayed and not asks,
        # Its caller has said that it works: too many questions stand to look at each of them every second.
        "a question is hidden": is_relayed and asks and is_free,
        OVER: is_over and call.run is None,
    }
    return (kind for kind, holds in told.items() if holds)
