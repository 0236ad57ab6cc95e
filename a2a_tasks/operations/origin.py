"""The dialect in which a task was made, for requests whose dialect nothing else decides."""

from __future__ import annotations

from a2a_tasks.caller import OwnerScope
from a2a_tasks.operations.backpressure import limit_waiting
from a2a_tasks.store import tasks
from a2a_tasks.store.db import run_in_thread

__all__ = ["origin_of"]


async def origin_of(scope: OwnerScope, task_id: str) -> str:
    """Return the code of the dialect; empty for a missing or foreign task."""
    with limit_waiting():
        return await run_in_thread(tasks.origin, scope, task_id)
