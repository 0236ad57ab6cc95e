"""In which dialect was a task made? Asked where nothing else tells how a request is to be read."""

from __future__ import annotations

from a2a_tasks.caller import Scope
from a2a_tasks.operations.line import in_line
from a2a_tasks.store import tasks
from a2a_tasks.store.hop import hop

__all__ = ["origin_of"]


@in_line
async def origin_of(scope: Scope, task_id: str) -> str:
    """Code of the dialect; empty for a missing or foreign task."""
    return await hop(tasks.origin, scope, task_id)
