"""Statistics of all webhooks, read from the tables, so that every process has equal numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.claims import due

__all__ = ["WebhookCounts", "count_pending", "read_counts"]


@dataclass(frozen=True, slots=True)
class WebhookCounts:
    """The present counts."""

    #: Unleased webhooks with work.
    due: int
    #: Pending deliveries, under way or waiting.
    pending: int
    #: Seconds since the oldest due delivery became due; 0 = none is due.
    late: float
    #: Receivers with an open or half-open breaker, with a pause by Retry-After, and disabled ones.
    breakers_open: int
    paused: int
    disabled: int


def read_counts() -> WebhookCounts:
    """Return the present counts."""
    receivers = Receiver.objects.all()
    pending, late = count_pending(Delivery.objects.all())
    return WebhookCounts(
        due=PushConfig.objects.filter(due()).count(),
        pending=pending,
        late=late or 0.0,
        breakers_open=receivers.exclude(probe_at=None).count(),
        paused=receivers.filter(paused_until__gt=Now()).count(),
        disabled=receivers.exclude(disabled_at=None).count(),
    )


def count_pending(
    deliveries: QuerySet[Delivery], limit: int | None = None
) -> tuple[int, float | None]:
    """Return the number of pending deliveries, and the seconds since the oldest due one became due; None = none is due.

    Each query reads at most `limit` rows; None = all.
    """
    pending = deliveries.filter(status=DeliveryStatus.PENDING).order_by("pk")
    ripe: Any = pending.filter(Q(next_at=None) | Q(next_at__lte=Now()))
    times = ripe.annotate(at=Coalesce("next_at", "created_at"))[:limit]
    oldest = times.aggregate(oldest=Min("at"))["oldest"]
    late = max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else None
    return pending[:limit].count(), late
