"""Conditions for the tasks in a scope: the tasks of its owner, and shared tasks of another owner that it may read.

If two owners have a task with one id, the older task is found.
"""

from __future__ import annotations

from django.db.models import Q

from a2a_tasks.caller import OwnerScope, ScopePart
from a2a_tasks.models import Task

__all__ = ["on", "visible_to", "reaches"]


def on(scope: OwnerScope, part: ScopePart) -> Q:
    """Return the condition for the visible tasks of one part of the scope."""
    where = Q(tenant=scope.tenant, owner=part.owner, agent=scope.agent, is_task=True)
    return where & Q(created_by=part.created_by) if part.created_by else where


def visible_to(scope: OwnerScope) -> Q:
    """Return the condition for the visible tasks of all parts of the scope."""
    found = Q()
    for part in scope.parts:
        found |= on(scope, part)
    return found


def reaches(scope: OwnerScope, task: Task) -> bool:
    """Return whether the task is in the scope, visible already or not yet."""
    if (task.tenant, task.agent) != (scope.tenant, scope.agent):
        return False
    parts = (ScopePart(task.owner), ScopePart(task.owner, task.created_by))
    return any(part in scope.parts for part in parts)
