"""The Celery job of webhooks. Workers of the queue `webhooks` send without jobs while they run."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from a2a_push import delivery

__all__ = ["QUEUE", "sweep_webhooks"]

#: The queue of its workers.
QUEUE = "webhooks"


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sweep_webhooks(**_: Any) -> None:
    """Make a worker sweep all webhooks, as a recurring job of beat, in case hints were lost."""
    delivery.wake()
