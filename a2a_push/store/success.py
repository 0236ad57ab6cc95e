"""How webhooks do, among the figures of the host: what was delivered in a period, and what waits now."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from typing import Any

from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce, Floor, Now
from django.utils import timezone

from a2a_push.models import Delivery, Status
from a2a_tasks.store.figures import COUNTED, Beside, Epoch, Narrow, Number, Period, Rows, Series

__all__ = ["webhooks"]

DELIVERIES = "a2a_push.delivery"


def webhooks(period: Period, since: datetime.datetime, narrow: Narrow) -> Beside:
    """What was settled in the period, and how it stands with what is not."""
    slots = _settled(period, since, narrow)
    whole: Counter[str] = sum(slots.values(), Counter())
    return Beside(
        name="webhooks",
        title="Webhooks",
        model=DELIVERIES,
        numbers=(*_of_the_period(period, whole), *_of_now(narrow)),
        series=tuple(
            Series(status.value, colour, tuple(slots[n][status] for n in range(period.slots)))
            for status, colour in ((Status.DELIVERED, "good"), (Status.DEAD, "bad"))
        ),
    )


def _settled(
    period: Period, since: datetime.datetime, narrow: Narrow
) -> defaultdict[int, Counter[str]]:
    """How many deliveries of each slot ended how; read from the index `delivery_settled`."""
    slot = Floor((Epoch("settled_at") - since.timestamp()) / period.step.total_seconds())
    rows = narrow(Delivery.objects.filter(settled_at__gte=since), "task__")
    counted = rows.annotate(slot=slot).values_list("slot", "status").order_by()
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for number, status, count in counted.annotate(count=Count("*")):
        found[int(number)][status] += count
    return found


def _of_the_period(period: Period, whole: Counter[str]) -> tuple[Number, ...]:
    told = whole[Status.DELIVERED] + whole[Status.DEAD]
    success = 100 * whole[Status.DELIVERED] / told if told else None
    return (
        Number(
            name="success",
            label=f"Of those settled {period.words} were delivered",
            value=success,
            unit="%",
            is_bad=bool(whole[Status.DEAD]),
        ),
        Number(
            name="delivered",
            label="Delivered",
            value=whole[Status.DELIVERED],
            rows=Rows(DELIVERIES, {"status": Status.DELIVERED.value, "settled": period.name}),
        ),
        Number(
            name="dead",
            label="Dead",
            value=whole[Status.DEAD],
            rows=Rows(DELIVERIES, {"status": Status.DEAD.value, "settled": period.name}),
            is_bad=bool(whole[Status.DEAD]),
        ),
    )


def _of_now(narrow: Narrow) -> tuple[Number, ...]:
    pending = narrow(Delivery.objects.filter(status=Status.PENDING), "task__")
    ripe = pending.filter(Q(next_at=None) | Q(next_at__lte=Now())).order_by("pk")[:COUNTED]
    oldest: Any = Delivery.objects.filter(pk__in=ripe.values("pk")).aggregate(
        at=Min(Coalesce("next_at", "created_at"))
    )["at"]
    late = max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else None
    return (
        Number(
            name="pending",
            label="Deliveries pending",
            value=pending.values("pk")[:COUNTED].count(),
            is_bounded=True,
            rows=Rows(DELIVERIES, {"status": Status.PENDING.value}),
        ),
        Number(name="late", label="Oldest due one has waited for", value=late, unit="s"),
    )
