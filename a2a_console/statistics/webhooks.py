"""The statistics of webhooks: deliveries that were settled in a period, by moment and receiver, and pending ones."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count

from a2a_console.statistics.counts import COUNTED, Narrow, Number, Period, SlotBegin
from a2a_push.models import Delivery, DeliveryStatus, Receiver
from a2a_push.store.statistics import count_pending

__all__ = ["DELIVERIES", "TOP", "ReceiverLine", "WebhookStatistics", "report_webhooks"]

DELIVERIES = "a2a_push.delivery"
#: The largest number of receivers in a report: those with most dead deliveries, then with most pending ones.
TOP = 5
DELIVERED, DEAD, PENDING = DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.PENDING


@dataclass(frozen=True, slots=True)
class ReceiverLine:
    """The deliveries to one receiver."""

    receiver: Receiver
    delivered: int
    dead: int
    pending: int


@dataclass(frozen=True, slots=True)
class WebhookStatistics:
    """The statistics of webhooks. A series is a count for each slot."""

    numbers: Sequence[Number]
    series: Mapping[str, Sequence[int]]
    receivers: Sequence[ReceiverLine]


def report_webhooks(period: Period, since: datetime.datetime, narrow: Narrow) -> WebhookStatistics:
    """Count deliveries, pending ones to COUNTED."""
    everything = narrow(Delivery.objects.order_by(), "task__")
    settled = everything.filter(settled_at__gte=since, status__in=[DELIVERED, DEAD])
    numbered = settled.annotate(slot=SlotBegin("settled_at", period))
    slots, totals = Counter[tuple[datetime.datetime, str]](), Counter[str]()
    receivers = defaultdict[int, Counter[str]](Counter)
    groups = numbered.values_list("slot", "status").annotate(count=Count("*"))
    for slot, status, count in groups:
        slots[slot, status] += count
        totals[status] += count
    for receiver, status, count in settled.values_list("receiver", "status").annotate(n=Count("*")):
        receivers[receiver][status] += count
    next_ones = everything.filter(status=PENDING).order_by("pk").values_list("receiver", flat=True)
    for receiver in next_ones[:COUNTED]:
        receivers[receiver][PENDING] += 1
    pending, late = count_pending(everything, COUNTED)
    arrived, failed = ({"status": str(s), "settled": period.name} for s in (DELIVERED, DEAD))
    waits, is_bad = {"status": str(PENDING)}, totals[DEAD] > 0
    return WebhookStatistics(
        numbers=(
            Number(
                "delivered", f"Delivered {period.words}", totals[DELIVERED], DELIVERIES, arrived
            ),
            Number("dead", f"Dead {period.words}", totals[DEAD], DELIVERIES, failed, is_bad=is_bad),
            Number("pending", "Deliveries pending", pending, DELIVERIES, waits, is_bounded=True),
            Number("late", "Oldest overdue delivery", late, unit="s"),
        ),
        series={
            str(status): [slots[begin, status] for begin in period.list_slots(since)]
            for status in (DELIVERED, DEAD)
        },
        receivers=_list_receivers(receivers),
    )


def _list_receivers(counts: Mapping[int, Counter[str]]) -> list[ReceiverLine]:
    order = (DEAD, PENDING, DELIVERED)
    keys = sorted(counts, key=lambda key: ([-counts[key][status] for status in order], key))[:TOP]
    rows = Receiver.objects.in_bulk(keys)
    return [
        ReceiverLine(rows[key], *(counts[key][status] for status in (DELIVERED, DEAD, PENDING)))
        for key in keys
        if key in rows
    ]
