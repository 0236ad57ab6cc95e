"""The section of webhooks on the page of a task."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from a2a_console.admin.webhooks.sent_notifications import DeliveryLine, newest_deliveries
from a2a_console.webhooks.configs import describe_config
from a2a_push.models import PushConfig

__all__ = ["webhooks"]

#: The largest number of webhooks on the page of a task; a task may have few more.
CONFIGS = 100


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """The context of the section."""

    configs: list[tuple[PushConfig, str]]
    deliveries: list[DeliveryLine]
    task_id: str


def webhooks(request: HttpRequest, task: int) -> Webhooks | None:
    """Return the webhooks of a task and its newest deliveries; None if there are none that the user may view."""
    configs = _configs(task) if request.user.has_perm("a2a_push.view_pushconfig") else []
    deliveries = newest_deliveries(request, task=task)
    if not configs and not deliveries:
        return None
    task_id = configs[0][0].task.public_id if configs else deliveries[0].row.task.public_id
    return Webhooks(configs=configs, deliveries=deliveries, task_id=task_id)


def _configs(task: int) -> list[tuple[PushConfig, str]]:
    rows = PushConfig.objects.filter(task_id=task).select_related("receiver", "task")
    shown = rows.only(
        *("public_id", "cursor", "active", "disabled_reason", "created_at"),
        *("receiver__address", "task__public_id", "task__last_event"),
    )
    return [(row, describe_config(row)) for row in shown.order_by("pk")[:CONFIGS]]
