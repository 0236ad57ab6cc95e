"""The lines of webhooks in the timeline of a task: each attempt to deliver one of the shown events."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest

from a2a_console.admin.webhooks.sent_notifications import may_view
from a2a_console.admin.widgets.lines import MAX_COUNT, LineSpan, TimelineLine
from a2a_push.models import Attempt, Delivery

__all__ = ["attempts"]

TEMPLATE = "admin/a2a_push/task/line_attempt.html"


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
