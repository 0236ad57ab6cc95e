"""The tree of the tasks that agents have given each other, as pages, API and diagnosis show it."""

from __future__ import annotations

import datetime
from collections import defaultdict
from dataclasses import dataclass, replace

from django.db.models import Q

from a2a_tasks.models import Delegation, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store.usage import sum_by_task

__all__ = ["CalledTask", "find_leaf", "read_tree"]

#: Most tasks of a tree that are shown, and most steps from a task down to the one that it waits for.
SHOWN, DEEPEST = 100, 100


@dataclass(frozen=True, kw_only=True, slots=True)
class CalledTask:
    """A task of a tree."""

    key: int
    public_id: str
    agent: str
    state: str
    created_at: datetime.datetime
    status_at: datetime.datetime
    #: The number of calls between the root and the task, the key of the task that called it, and the name of the call.
    depth: int = 0
    parent: int | None = None
    call: str = ""
    #: The cost of its models in its currency; None = unknown, or nothing.
    cost: float | None = None
    currency: str = ""


COLUMNS = ("public_id", "agent", "state", "created_at", "status_at")


def read_tree(task: int) -> list[CalledTask]:
    """Return the tasks of the tree of a task, each before those that it has called; empty if nobody called anybody."""
    own = Delegation.objects.filter(Q(child=task) | Q(root=task))
    root = own.values_list("root", flat=True).first()
    if root is None:
        return []
    columns = [f"child__{name}" for name in COLUMNS]
    calls = Delegation.objects.filter(root=root).order_by("pk")
    rows = calls.values_list("child", *columns, "depth", "parent", "name")[:SHOWN]
    below = defaultdict[int, list[CalledTask]](list)
    for row in rows:
        below[row[-2]].append(_make(*row))
    first = Task.objects.filter(pk=root).values_list("pk", *COLUMNS).first()
    return _add_costs(_walk(_make(*first), below)) if first else []


def _make(key: int, *about: object) -> CalledTask:
    names = (*COLUMNS, "depth", "parent", "call")
    return CalledTask(key=key, **dict(zip(names, about, strict=False)))  # type: ignore[arg-type] # as the columns are


def _walk(task: CalledTask, below: dict[int, list[CalledTask]]) -> list[CalledTask]:
    return [task, *(each for child in below.get(task.key, ()) for each in _walk(child, below))]


def _add_costs(tasks: list[CalledTask]) -> list[CalledTask]:
    """Return the tasks with the costs of their models, as far as these are in one currency."""
    sums = sum_by_task([task.key for task in tasks])
    shown = []
    for task in tasks:
        costs = [used for used in sums.get(task.key, {}).values() if used.cost is not None]
        if len({used.currency for used in costs}) == 1:
            cost = sum(used.cost or 0.0 for used in costs)
            task = replace(task, cost=cost, currency=costs[0].currency)
        shown.append(task)
    return shown


def find_leaf(task: int) -> CalledTask | None:
    """Return the task for which this one waits, and which waits for no other; None if it waits for none."""
    found, key = None, task
    for _ in range(DEEPEST):
        calls = Delegation.objects.filter(parent=key, open=True, awaited=True)
        calls = calls.exclude(child__state__in=TERMINAL).order_by("pk")
        columns = [f"child__{name}" for name in COLUMNS]
        row = calls.values_list("child", *columns, "depth", "parent", "name").first()
        if row is None:
            break
        found, key = _make(*row), row[0]
    return found
