"""What every serving process begins beside its requests, whatever it serves them over."""

from __future__ import annotations

from a2a_project import health
from a2a_push import delivery
from a2a_tasks import lifetime
from a2a_tasks.access.spoken import say_who_may_come
from a2a_tasks.execution import dispatch

__all__ = ["register"]


async def deliver() -> None:
    """Send webhooks from this process, if it also runs the agents; otherwise workers do."""
    if not dispatch.by_workers():
        await delivery.begin(alone=True)


def register() -> None:
    """Have it begun when the process starts. Call it once a process."""
    lifetime.on_start(dispatch.ensure_started)
    lifetime.on_start(deliver)
    lifetime.on_start(say_who_may_come)
    lifetime.on_start(health.tell_when_ready)
