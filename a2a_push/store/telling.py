"""What is kept of webhooks, for whom their tasks are: without secrets, and of a URL no more than where it leads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from a2a_push.models import Delivery, PushConfig

__all__ = ["deliveries", "webhooks"]


def webhooks(tasks: Collection[int]) -> Iterator[Mapping[str, Any]]:
    """The webhooks of these tasks."""
    rows = PushConfig.objects.filter(task__in=tasks).select_related("task", "receiver")
    for row in rows.defer("secret").order_by("pk").iterator():
        yield {
            "task": row.task.public_id,
            "id": row.public_id,
            "to": row.receiver.address,
            "schemes": row.schemes,
            "registered": row.created_at,
        }


def deliveries(tasks: Collection[int]) -> Iterator[Mapping[str, Any]]:
    """What they were told, and how that went. The bodies are the tasks' own events."""
    rows = Delivery.objects.filter(task__in=tasks).select_related("task", "receiver")
    for row in rows.defer("body").order_by("pk").iterator():
        yield {
            "task": row.task.public_id,
            "id": row.webhook_id,
            "to": row.receiver.address,
            "events": [row.number, row.through],
            "status": row.status,
            "made": row.created_at,
            "settled": row.settled_at,
        }
