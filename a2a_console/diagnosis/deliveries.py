"""Deliveries for lists: with their related rows, and without long or secret columns."""

from __future__ import annotations

from django.db.models import Case, Exists, OuterRef, Prefetch, QuerySet, When
from django.utils import timezone

from a2a_console.diagnosis.delivery_waits import DeliveryFacts, Wait, wait
from a2a_push.models import Attempt, Delivery, DeliveryStatus
from a2a_push.retry_schedule import DELAYS
from a2a_push.store.receivers import read
from a2a_tasks.models import LONG_COLUMNS

__all__ = ["last_attempt", "reason_of", "wait_of", "with_company"]

#: Long or secret columns, which no list shows.
UNREAD = (
    *("body", "config__secret", "config__token"),
    *(f"task__{name}" for name in LONG_COLUMNS),
)


def with_company(rows: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Add to each its task, webhook, receiver and last attempt, and whether another delivery goes first."""
    earlier = Delivery.objects.filter(
        config=OuterRef("config"), status=DeliveryStatus.PENDING, pk__lt=OuterRef("pk")
    )
    last = Attempt.objects.defer("excerpt", "detail", "worker").order_by("-pk")[:1]
    return (
        rows.select_related("task", "receiver", "config")
        .defer(*UNREAD)
        # Only for pending deliveries: a list evaluates the subquery for all rows that it passes.
        .annotate(
            behind=Case(When(status=DeliveryStatus.PENDING, then=Exists(earlier)), default=False)
        )
        .prefetch_related(Prefetch("tries", queryset=last, to_attr="last_tries"))
    )


def last_attempt(row: Delivery) -> Attempt | None:
    """Return the newest attempt at a delivery that was read by `with_company`."""
    tries: list[Attempt] = getattr(row, "last_tries", [])
    return tries[0] if tries else None


def reason_of(delivery: Delivery) -> str:
    """Return why a delivery read by `with_company` waits or died, in a sentence; empty if it succeeded."""
    if delivery.status != DeliveryStatus.PENDING:
        return delivery.reason
    return wait_of(delivery).sentence


def wait_of(delivery: Delivery) -> Wait:
    """Return the reason why a pending delivery waits, which was read by `with_company`."""
    config, receiver = delivery.config, delivery.receiver
    breaker = read(receiver)
    situation = DeliveryFacts(
        attempts=delivery.attempts,
        of=len(DELAYS),
        reason=delivery.reason,
        next_at=delivery.next_at,
        behind=getattr(delivery, "behind", False),
        webhook_disabled=config.disabled_reason if config else "it was deleted",
        worker=config.worker if config else "",
        lease_until=config.lease_until if config else None,
        receiver_disabled=receiver.disabled_at is not None,
        disabled_reason=receiver.disabled_reason,
        paused_until=receiver.paused_until,
        phase=breaker.phase,
        breaker_reason=breaker.reason,
        probe_at=receiver.probe_at,
    )
    return wait(situation, timezone.now())
