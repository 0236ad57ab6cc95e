"""Which tasks a scope reaches: those of its drawer, and what it may read of the one beside.

Of two tasks with one id, each in a drawer of its own, everybody means the older one.
"""

from __future__ import annotations

from django.db.models import Q

from a2a_tasks.caller import Scope, Shelf
from a2a_tasks.models import Task

__all__ = ["on", "reached", "reaches"]


def on(scope: Scope, shelf: Shelf) -> Q:
    """The tasks on one shelf of the scope that clients are shown."""
    where = Q(tenant=scope.tenant, owner=shelf.owner, agent=scope.agent, is_task=True)
    return where & Q(maker=shelf.maker) if shelf.maker else where


def reached(scope: Scope) -> Q:
    """All of them."""
    found = Q()
    for shelf in scope.shelves:
        found |= on(scope, shelf)
    return found


def reaches(scope: Scope, task: Task) -> bool:
    """Is this task among them, once it is shown?"""
    if (task.tenant, task.agent) != (scope.tenant, scope.agent):
        return False
    shelves = (Shelf(task.owner), Shelf(task.owner, task.maker))
    return any(shelf in scope.shelves for shelf in shelves)
