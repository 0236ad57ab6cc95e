"""How it stands with all webhooks, in a few numbers, read from the tables: they are the same in every process."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Min, Q
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from a2a_push.models import Delivery, PushConfig, Receiver, Status
from a2a_push.store.taking import due

__all__ = ["Figures", "figures"]


@dataclass(frozen=True, slots=True)
class Figures:
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


def figures() -> Figures:
    """Read them."""
    pending, receivers = Delivery.objects.filter(status=Status.PENDING), Receiver.objects.all()
    ripe = pending.filter(Q(next_at=None) | Q(next_at__lte=Now()))
    oldest = ripe.aggregate(at=Min(Coalesce("next_at", "created_at")))["at"]
    return Figures(
        due=PushConfig.objects.filter(due()).count(),
        pending=pending.count(),
        late=max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0.0,
        breakers_open=receivers.exclude(probe_at=None).count(),
        paused=receivers.filter(paused_until__gt=Now()).count(),
        disabled=receivers.exclude(disabled_at=None).count(),
    )
