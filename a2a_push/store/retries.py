"""Replay to endpoints that were disabled automatically (failures for five days, or a 410).

Such a receiver or webhook is enabled on trial when an operator replays a delivery. An endpoint that an operator disabled
stays disabled, because the right to replay does not include the right to enable.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from a2a_push import breaker
from a2a_push.models import Delivery, DeliveryStatus, PushConfig, Receiver
from a2a_push.store.receivers import read, to_columns
from a2a_tasks.audit import Action
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store import audit

__all__ = ["Prospect", "forecast", "is_switched_off", "put_on_trial"]

#: The reason in the audit log for enabling them.
WHY = {"because": "something is sent again"}


@dataclass(frozen=True, slots=True)
class Prospect:
    """The forecast of a replay."""

    #: Number of deliveries that would be sent.
    sent: int = 0
    #: Number of these whose receiver or webhook was disabled automatically.
    on_trial: int = 0
    #: Number of deliveries that would not be sent because an operator has disabled the receiver.
    held_back: int = 0


def forecast(deliveries: QuerySet[Delivery]) -> Prospect:
    """Return the forecast for these deliveries, without pending ones and those whose webhook was deleted."""
    settled = (
        deliveries.exclude(status=DeliveryStatus.PENDING).filter(config__isnull=False).order_by()
    )
    off = ~Q(config__disabled_reason="") | Q(config__receiver__disabled_at__isnull=False)
    kinds = settled.filter(off).values_list(
        "config__receiver__disabled_at", "config__receiver__breaker"
    )
    on_trial = held_back = 0
    for disabled_at, state, count in kinds.annotate(Count("pk")):
        if is_switched_off(Receiver(disabled_at=disabled_at, breaker=state)):
            held_back += count
        else:
            on_trial += count
    return Prospect(sent=settled.count() - held_back, on_trial=on_trial, held_back=held_back)


def is_switched_off(receiver: Receiver) -> bool:
    """Return whether an operator disabled the receiver."""
    return receiver.disabled_at is not None and not read(receiver).given_up


def put_on_trial(configs: Collection[int]) -> list[int]:
    """Re-enable those of these locked webhooks that were disabled automatically, and return the webhooks to send to.

    Webhooks whose receiver an operator disabled are not returned. Call it in a transaction.
    """
    rows = PushConfig.objects.filter(pk__in=configs).order_by("pk")
    of = dict(rows.values_list("pk", "receiver"))
    forbidden = _try_receivers(set(of.values()))
    allowed = [config for config, receiver in of.items() if receiver not in forbidden]
    _try_webhooks(allowed)
    return allowed


def _try_receivers(keys: Collection[int]) -> set[int]:
    """Re-enable receivers that were disabled automatically; return the keys of those that stay disabled."""
    disabled = Receiver.objects.filter(pk__in=keys, disabled_at__isnull=False).order_by("pk")
    forbidden = set()
    for row in disabled.select_for_update(no_key=True):
        if is_switched_off(row):
            forbidden.add(row.pk)
            continue
        state = to_columns(breaker.reopen(read(row)))
        columns = {**state, "disabled_at": None, "disabled_reason": ""}
        Receiver.objects.filter(pk=row.pk).update(**columns)
        audit.note(Action.RECEIVER_ENABLE, str(row.pk), tenant=row.tenant, detail=WHY)
    return forbidden


def _try_webhooks(keys: Collection[int]) -> None:
    disabled = PushConfig.objects.filter(pk__in=keys).exclude(disabled_reason="").order_by("pk")
    scopes = ("task__tenant", "task__owner", "task__agent")
    for *scope, task, config in disabled.values_list(*scopes, "task__public_id", "public_id"):
        detail = {"config": config, **WHY}
        audit.note(Action.WEBHOOK_ENABLE, task, scope=OwnerScope(*scope), detail=detail)
    disabled.update(disabled_reason="")
