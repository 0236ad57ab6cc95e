"""Replays: an operator sends settled deliveries again, or pending ones at once."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Trigger
from a2a_push.store.presence import note_one_more
from a2a_push.store.retries import put_on_trial
from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store import audit

__all__ = ["replay", "retry_now"]

#: Deliveries replayed in one transaction.
SLICE = 500


def replay(ids: Collection[int]) -> int:
    """Send these deliveries again, with their ids, and from the beginning of the schedule. Returns their number.

    Pending deliveries are skipped, and those whose webhook was deleted, because its secrets are gone. Receivers and
    webhooks that were disabled automatically are tried again; those that an operator disabled are skipped.
    """
    keys, count = sorted(ids), 0
    for first in range(0, len(keys), SLICE):
        replayed, hints = _replay(keys[first : first + SLICE])
        _announce(hints)
        count += replayed
    return count


def retry_now(delivery: int) -> bool:
    """Make a pending delivery due now. False if it is not pending, or an operator has disabled its receiver.

    The schedule continues after this attempt. A receiver whose breaker is open still gets nothing; one that was disabled
    automatically is tried.
    """
    with transaction.atomic():
        pending = Delivery.objects.filter(pk=delivery, status=DeliveryStatus.PENDING)
        configs = put_on_trial(_lock_webhooks(pending))
        _note(pending.filter(config__in=configs))
        changes = {"next_at": None, "trigger": Trigger.OPERATOR}
        hints = _due(configs) if pending.filter(config__in=configs).update(**changes) else []
    _announce(hints)
    return bool(hints)


@transaction.atomic
def _replay(ids: list[int]) -> tuple[int, list[pubsub.Hint]]:
    settled = Delivery.objects.filter(pk__in=ids).exclude(status=DeliveryStatus.PENDING)
    configs = put_on_trial(_lock_webhooks(settled))
    _note(settled.filter(config__in=configs))
    count = settled.filter(config__in=configs).update(
        status=DeliveryStatus.PENDING,
        attempts=0,
        next_at=None,
        reason="",
        settled_at=None,
        trigger=Trigger.OPERATOR,
        replays=F("replays") + 1,
    )
    return count, _due(configs)


def _note(deliveries: QuerySet[Delivery]) -> None:
    scopes = ("task__tenant", "task__owner", "task__agent")
    rows = deliveries.order_by("pk").values_list("webhook_id", *scopes)
    audit.note_each(Action.WEBHOOK_REPLAY, [(OwnerScope(*scope), name) for name, *scope in rows])


def _lock_webhooks(deliveries: QuerySet[Delivery]) -> list[int]:
    """Return the keys of the deliveries' webhooks, locked."""
    keys = list(deliveries.filter(config__isnull=False).values_list("config", flat=True))
    configs = PushConfig.objects.filter(pk__in=keys).order_by("pk").select_for_update()
    return list(configs.values_list("pk", flat=True))


def _due(configs: list[int]) -> list[pubsub.Hint]:
    """Make these webhooks due now; return the hints to announce."""
    due = PushConfig.objects.filter(pk__in=configs)
    due.update(active=True, due_at=Now())
    note_one_more()
    tasks = due.values_list("task", "task__last_event").order_by("task").distinct()
    return [pubsub.Committed(task, last) for task, last in tasks]


def _announce(hints: list[pubsub.Hint]) -> None:
    for hint in hints:
        pubsub.publish(hint)
