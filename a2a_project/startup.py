"""What every serving process begins beside its requests, whatever it serves them over."""

from __future__ import annotations

import functools

from a2a_project import health
from a2a_push import delivery
from a2a_tasks import lifetime
from a2a_tasks.access.spoken import say_who_may_come
from a2a_tasks.execution import dispatch, presence
from a2a_tasks.store.workers import WorkerKind

__all__ = ["register"]


async def deliver() -> None:
    """Send webhooks from this process, if it also runs the agents; otherwise workers do."""
    if not dispatch.by_workers():
        await delivery.begin(alone=True)


def register(kind: WorkerKind = WorkerKind.WEB) -> None:
    """Have it begun when the process starts. Call it once a process."""
    # First, since what begins first ends last: it is there as long as it carries anything.
    lifetime.on_start(functools.partial(presence.begin, kind, dispatch.load))
    lifetime.on_start(dispatch.ensure_started)
    lifetime.on_start(deliver)
    lifetime.on_start(say_who_may_come)
    lifetime.on_start(health.tell_when_ready)
