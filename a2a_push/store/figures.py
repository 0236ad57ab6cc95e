"""Figures of all webhooks, read from the tables, so that they are the same in every process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.claims import due

__all__ = ["WebhookCounts", "count_pending", "figures"]


@dataclass(frozen=True, slots=True)
class WebhookCounts:
    """Of this moment."""

    #: Webhooks with something to be sent, that nobody is sending to.
    due: int
    #: Deliveries that are tried, or wait to be.
    pending: int
    #: Seconds since the oldest delivery that is due should have been tried; 0 = none is.
    late: float
    #: Receivers whose breaker is open or half-open, that asked to be left alone, that are disabled.
    breakers_open: int
    paused: int
    disabled: int


def figures() -> WebhookCounts:
    """Read them."""
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
    """Return how many of these are pending, and the seconds since the oldest due one should have been tried.

    Each reads `limit` rows at most; None = all. There are no seconds if none is due.
    """
    pending = deliveries.filter(status=DeliveryStatus.PENDING).order_by("pk")
    ripe: Any = pending.filter(Q(next_at=None) | Q(next_at__lte=Now()))
    times = ripe.annotate(at=Coalesce("next_at", "created_at"))[:limit]
    oldest = times.aggregate(oldest=Min("at"))["oldest"]
    late = max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else None
    return pending[:limit].count(), late
