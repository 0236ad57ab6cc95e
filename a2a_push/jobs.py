"""The Celery job of webhooks; workers of the queue `webhooks` send by themselves as long as they live."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from a2a_push import delivery

__all__ = ["QUEUE", "sweep_webhooks"]

#: The queue of its workers.
QUEUE = "webhooks"


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sweep_webhooks(**_: Any) -> None:
    """Let a worker look at all webhooks, as a recurring job of beat, in case no hint arrived."""
    delivery.wake()
