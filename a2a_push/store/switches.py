"""Disabling and enabling of receivers and webhooks by operators."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from a2a_push import breaker
from a2a_push.breaker import Breaker
from a2a_push.models import PushConfig, Receiver
from a2a_push.store.presence import note_one_more
from a2a_push.store.retries import is_switched_off
from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.store import audit, tasks

__all__ = ["disable", "enable", "enable_config"]

#: Maximum number of webhooks that are announced when their receiver is enabled.
MAX_HINTED = 1000


@transaction.atomic
def disable(receiver: int, reason: str) -> bool:
    """Disable the receiver. New deliveries for it are stored as dead, with this reason.

    False if an operator has disabled it already. A receiver that was disabled automatically then gets no replays any more.
    """
    row = Receiver.objects.select_for_update().get(pk=receiver)
    if is_switched_off(row):
        return False
    switched_off = breaker.disable(Breaker(), reason)
    Receiver.objects.filter(pk=receiver).update(
        breaker=write(switched_off).decode(),
        probe_at=None,
        disabled_at=Now(),
        disabled_reason=reason,
        well=False,
    )
    audit.note(Action.RECEIVER_DISABLE, str(receiver), tenant=row.tenant)
    return True


def enable(receiver: int) -> bool:
    """Enable a receiver and reset its breaker. False if it was neither disabled, blocked nor paused.

    Dead deliveries stay dead until they are replayed.
    """
    if not _enable(receiver):
        return False
    _announce(PushConfig.objects.filter(receiver=receiver, active=True))
    return True


@transaction.atomic
def _enable(receiver: int) -> bool:
    rows = Receiver.objects.filter(pk=receiver)
    blocked = rows.exclude(disabled_at=None, probe_at=None, paused_until=None)
    row = blocked.select_for_update().first()
    if row is None:
        return False
    rows.update(
        breaker="{}",
        probe_at=None,
        paused_until=None,
        disabled_at=None,
        disabled_reason="",
        well=False,
    )
    audit.note(Action.RECEIVER_ENABLE, str(receiver), tenant=row.tenant)
    return True


def enable_config(config: int) -> bool:
    """Enable a webhook for later events. False if it was not disabled."""
    if not _enable_config(config):
        return False
    note_one_more()
    _announce(PushConfig.objects.filter(pk=config))
    return True


@transaction.atomic
def _enable_config(config: int) -> bool:
    disabled = PushConfig.objects.filter(pk=config).exclude(disabled_reason="")
    if not disabled.update(disabled_reason="", active=True, due_at=Now()):
        return False
    row = PushConfig.objects.only("task_id", "public_id").get(pk=config)
    task, detail = tasks.read_status(row.task_id), {"config": row.public_id}
    audit.note(Action.WEBHOOK_ENABLE, task.public_id, scope=task.scope, detail=detail)
    return True


def _announce(configs: QuerySet[PushConfig]) -> None:
    """Wake a deliverer for these webhooks; the sweep finds the rest if there are too many."""
    for task, last in configs.values_list("task", "task__last_event")[:MAX_HINTED]:
        pubsub.publish(pubsub.Committed(task, last))
