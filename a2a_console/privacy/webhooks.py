"""The webhooks of a principal's tasks for the export, without secrets, and with URLs without their query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from a2a_push.models import Delivery, PushConfig

__all__ = ["deliveries", "webhooks"]


def webhooks(tasks: Collection[int]) -> Iterator[Mapping[str, Any]]:
    """Yield the webhooks of these tasks."""
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
    """Yield the deliveries of these tasks with their results, without bodies, which are the tasks' own events."""
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
