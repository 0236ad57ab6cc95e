"""What the timeline of a task tells of its webhooks: each attempt to tell of the events that are shown."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest

from a2a_push.admin.told import may_view
from a2a_push.models import Attempt, Delivery
from a2a_tasks.admin.beside import MOST, Line, Span

__all__ = ["attempts"]

TEMPLATE = "admin/a2a_push/task/line_attempt.html"


def attempts(request: HttpRequest, span: Span) -> Iterator[Line]:
    """The attempts at deliveries of the span's events, however late they were, to who may view deliveries.

    By number, not by time: the numbers have an index, and an attempt belongs to what it tells.
    """
    if not may_view(request):
        return
    numbers = (span.first, span.last)
    told = Delivery.objects.filter(task_id=span.task.pk, number__range=numbers).order_by("-number")
    keys = list(told.values_list("pk", flat=True)[: MOST + 1])
    rows = Attempt.objects.filter(delivery__in=keys).select_related("delivery__receiver")
    shown = rows.defer("excerpt", "delivery__body").order_by("-started_at", "-pk")
    for attempt in reversed(shown[: MOST + 1]):
        yield Line(
            at=attempt.started_at,
            template=TEMPLATE,
            content=attempt,
            is_grave=bool(attempt.fault),
        )
