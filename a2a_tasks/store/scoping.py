"""Conditions for the tasks that a scope reaches: those of its owner, and tasks of another owner that it may read.

Of two tasks with one id, of different owners, the older one is meant.
"""

from __future__ import annotations

from django.db.models import Q

from a2a_tasks.caller import OwnerScope, ScopePart
from a2a_tasks.models import Task

__all__ = ["on", "visible_to", "reaches"]


def on(scope: OwnerScope, part: ScopePart) -> Q:
    """The tasks on one part of the scope that clients are shown."""
    where = Q(tenant=scope.tenant, owner=part.owner, agent=scope.agent, is_task=True)
    return where & Q(maker=part.created_by) if part.created_by else where


def visible_to(scope: OwnerScope) -> Q:
    """All of them."""
    found = Q()
    for part in scope.parts:
        found |= on(scope, part)
    return found


def reaches(scope: OwnerScope, task: Task) -> bool:
    """Is this task among them, once it is shown?"""
    if (task.tenant, task.agent) != (scope.tenant, scope.agent):
        return False
    parts = (ScopePart(task.owner), ScopePart(task.owner, task.maker))
    return any(part in scope.parts for part in parts)
