"""Celery's job of webhooks; workers of the queue `webhooks` send by themselves, for as long as they live."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from a2a_push import delivery

__all__ = ["QUEUE", "sweep_webhooks"]

#: Where its workers are found.
QUEUE = "webhooks"


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sweep_webhooks(**_: Any) -> None:
    """Beat's duty: have a worker look at all webhooks, though nobody has told it anything."""
    delivery.wake()
