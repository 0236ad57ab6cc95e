"""Retention of deliveries and receivers."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from django.db import transaction
from django.db.models import Exists, OuterRef

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.bodies import remove_unused
from a2a_tasks.conf import conf
from a2a_tasks.store import clock
from a2a_tasks.store.legal_holds import exclude_held

__all__ = ["forget", "find_undelivered"]


def find_undelivered(tasks: Collection[int]) -> set[int]:
    """Return those of these tasks with events that are still to be sent."""
    following = PushConfig.objects.filter(task__in=list(tasks), active=True)
    pending = Delivery.objects.filter(task__in=list(tasks), status=DeliveryStatus.PENDING)
    return {*following.values_list("task", flat=True), *pending.values_list("task", flat=True)}


def forget(max_count: int) -> int:
    """Delete deliveries settled A2A_WEBHOOK_RETENTION_DAYS ago, with their attempts, at most `max_count` of them.

    If there are none, delete receivers without webhooks and deliveries. Returns the number of deleted rows.
    """
    days = float(conf.WEBHOOK_RETENTION_DAYS)
    if not days:
        return 0
    try:
        limit = clock.now() - datetime.timedelta(days=days)
    except OverflowError:  # before the year 1
        return 0
    return _forget(limit, max_count)


@transaction.atomic
def _forget(limit: datetime.datetime, max_count: int) -> int:
    old = exclude_held(Delivery.objects.filter(settled_at__lt=limit), "task__").order_by(
        "settled_at"
    )
    locked = old.select_for_update(of=("self",), skip_locked=True)
    tasks = dict(locked.values_list("pk", "task")[:max_count])
    if tasks:
        count = Delivery.objects.filter(pk__in=tasks).only("pk").delete()[0]
        remove_unused(set(tasks.values()))
        return count
    # Unused receivers, but not disabled ones, which would be enabled as new ones.
    webhooks = PushConfig.objects.filter(receiver=OuterRef("pk"))
    deliveries = Delivery.objects.filter(receiver=OuterRef("pk"))
    unused = Receiver.objects.filter(created_at__lt=limit, disabled_at=None)
    unused = unused.exclude(Exists(webhooks)).exclude(Exists(deliveries))
    free = unused.order_by("pk").select_for_update(skip_locked=True)
    keys = list(free.values_list("pk", flat=True)[:max_count])
    # A second query: a webhook may have been registered between the first one and the lock.
    return unused.filter(pk__in=keys).delete()[0]
