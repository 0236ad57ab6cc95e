"""Retention: what is kept of webhooks, and for how long."""

from __future__ import annotations

import datetime
from collections.abc import Collection

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.bodies import remove_unused
from a2a_tasks.conf import conf
from a2a_tasks.store.legal_holds import unheld

__all__ = ["forget", "find_undelivered"]


def find_undelivered(tasks: Collection[int]) -> set[int]:
    """Those of these tasks of which somebody is still to be told."""
    following = PushConfig.objects.filter(task__in=list(tasks), active=True)
    pending = Delivery.objects.filter(task__in=list(tasks), status=DeliveryStatus.PENDING)
    return {*following.values_list("task", flat=True), *pending.values_list("task", flat=True)}


def forget(max_count: int) -> int:
    """Remove deliveries settled A2A_WEBHOOK_RETENTION_DAYS ago, with their attempts, at most so many at a time.

    Then receivers at which nobody has a webhook any more, nor a delivery. Returns how many rows went.
    """
    days = float(conf.WEBHOOK_RETENTION_DAYS)
    if not days:
        return 0
    try:
        limit = timezone.now() - datetime.timedelta(days=days)
    except OverflowError:  # longer than there have been days
        return 0
    return _forget(limit, max_count)


@transaction.atomic
def _forget(limit: datetime.datetime, max_count: int) -> int:
    old = unheld(Delivery.objects.filter(settled_at__lt=limit), "task__").order_by("settled_at")
    locked = old.select_for_update(of=("self",), skip_locked=True)
    tasks = dict(locked.values_list("pk", "task")[:max_count])
    if tasks:
        count = Delivery.objects.filter(pk__in=tasks).only("pk").delete()[0]
        remove_unused(set(tasks.values()))
        return count
    return _forget_receivers(limit, max_count)


def _forget_receivers(limit: datetime.datetime, max_count: int) -> int:
    """A disabled one is kept: it would be met as a new one."""
    webhooks = PushConfig.objects.filter(receiver=OuterRef("pk"))
    deliveries = Delivery.objects.filter(receiver=OuterRef("pk"))
    unused = Receiver.objects.filter(created_at__lt=limit, disabled_at=None)
    unused = unused.exclude(Exists(webhooks)).exclude(Exists(deliveries))
    locked = unused.order_by("pk").select_for_update(skip_locked=True)
    keys = list(locked.values_list("pk", flat=True)[:max_count])
    # Asked again: a webhook may have been registered after the look and before the lock.
    return unused.filter(pk__in=keys).delete()[0]
