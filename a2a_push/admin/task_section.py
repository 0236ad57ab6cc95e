"""What the page of a task says of its webhooks."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from a2a_push.admin.config_admin import state_of
from a2a_push.admin.told import Told, newest_deliveries
from a2a_push.models import PushConfig
from a2a_tasks.admin.beside import Section

__all__ = ["webhooks"]

#: Webhooks on the page of a task; it may have few more.
CONFIGS = 100


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """What the section shows."""

    configs: list[tuple[PushConfig, str]]
    told: list[Told]
    task_id: str


def webhooks(request: HttpRequest, task: int) -> Section | None:
    """The webhooks of a task and its newest deliveries, where there are any that the user may view."""
    configs = _configs(task) if request.user.has_perm("a2a_push.view_pushconfig") else []
    told = newest_deliveries(request, task=task)
    if not configs and not told:
        return None
    task_id = configs[0][0].task.public_id if configs else told[0].row.task.public_id
    content = Webhooks(configs=configs, told=told, task_id=task_id)
    return Section(template="admin/a2a_push/task/webhooks.html", content=content)


def _configs(task: int) -> list[tuple[PushConfig, str]]:
    rows = PushConfig.objects.filter(task_id=task).select_related("receiver", "task")
    shown = rows.only(
        *("public_id", "cursor", "active", "disabled_reason", "created_at"),
        *("receiver__address", "task__public_id", "task__last_event"),
    )
    return [(row, state_of(row)) for row in shown.order_by("pk")[:CONFIGS]]
