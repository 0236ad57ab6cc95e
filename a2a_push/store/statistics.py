"""Statistics of all webhooks, read from the tables, so that every process has equal numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Min, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.claims import REACHABLE, due
from a2a_tasks.store import clock

__all__ = ["WebhookCounts", "count_pending", "read_counts"]

#: The condition of deliveries that are due.
RIPE = Q(status=DeliveryStatus.PENDING) & (Q(next_at=None) | Q(next_at__lte=Now()))


@dataclass(frozen=True, slots=True)
class WebhookCounts:
    """The present counts."""

    #: Unleased webhooks with work.
    due: int
    #: Pending deliveries, under way or waiting.
    pending: int
    #: Seconds since the oldest notification that can be sent became due; 0 = none is due.
    late: float
    #: Receivers with an open or half-open breaker, with a pause by Retry-After, and disabled ones.
    breakers_open: int
    paused: int
    disabled: int


def read_counts() -> WebhookCounts:
    """Return the present counts."""
    receivers = Receiver.objects.all()
    return WebhookCounts(
        due=PushConfig.objects.filter(due()).count(),
        pending=Delivery.objects.filter(status=DeliveryStatus.PENDING).count(),
        late=_measure_delay(),
        breakers_open=receivers.exclude(probe_at=None).count(),
        paused=receivers.filter(paused_until__gt=Now()).count(),
        disabled=receivers.exclude(disabled_at=None).count(),
    )


def _measure_delay() -> float:
    """Return the seconds since the oldest notification became due, of those whose receiver takes requests now.

    An event has no delivery before a pusher has looked at it.
    """
    pending = Delivery.objects.filter(REACHABLE, RIPE, receiver__disabled_at=None)
    unseen = PushConfig.objects.filter(due(), due_at=None, task__events__number=F("looked") + 1)
    times = [
        pending.aggregate(oldest=Min(Coalesce("next_at", "created_at")))["oldest"],
        unseen.aggregate(oldest=Min("task__events__created_at"))["oldest"],
    ]
    return max((_age(at) for at in times if at is not None), default=0.0)


def _age(at: datetime) -> float:
    return max(0.0, (clock.now() - at).total_seconds())


def count_pending(
    deliveries: QuerySet[Delivery], limit: int | None = None
) -> tuple[int, float | None]:
    """Return the number of pending deliveries, and the seconds since the oldest due one became due; None = none is due.

    Each query reads at most `limit` rows; None = all.
    """
    pending = deliveries.filter(status=DeliveryStatus.PENDING).order_by("pk")
    ripe: Any = pending.filter(RIPE)
    times = ripe.annotate(at=Coalesce("next_at", "created_at"))[:limit]
    oldest = times.aggregate(oldest=Min("at"))["oldest"]
    return pending[:limit].count(), _age(oldest) if oldest else None
