"""Webhooks on the page of a task: their section, and the lines of the timeline, each an attempt to deliver a shown event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest

from a2a_console.admin.webhooks.sent_notifications import DeliveryLine, may_view, newest_deliveries
from a2a_console.admin.widgets.lines import MAX_COUNT, LineSpan, TimelineLine
from a2a_console.webhooks.configs import describe_config
from a2a_push.models import Attempt, Delivery, PushConfig

__all__ = ["attempts", "webhooks"]

TEMPLATE = "admin/a2a_push/task/line_attempt.html"
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


def attempts(request: HttpRequest, span: LineSpan) -> Iterator[TimelineLine]:
    """Yield the attempts to deliver the events of the span, however late, for users who may view deliveries.

    They are found by number, not by time: numbers have an index, and an attempt belongs to its event.
    """
    if not may_view(request):
        return
    numbers = (span.first, span.last)
    deliveries = Delivery.objects.filter(task_id=span.task.pk, number__range=numbers).order_by(
        "-number"
    )
    keys = list(deliveries.values_list("pk", flat=True)[: MAX_COUNT + 1])
    rows = Attempt.objects.filter(delivery__in=keys).select_related("delivery__receiver")
    shown = rows.defer("excerpt", "delivery__body").order_by("-started_at", "-pk")
    for attempt in reversed(shown[: MAX_COUNT + 1]):
        yield TimelineLine(
            at=attempt.started_at,
            template=TEMPLATE,
            content=attempt,
            is_grave=bool(attempt.fault),
        )
