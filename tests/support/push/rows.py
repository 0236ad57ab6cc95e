"""Rows of webhooks as the store would leave them, made at once: these tests are about looking, not about sending."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

from django.utils import timezone

from a2a_push.breaker import ORDINARY, Breaker, record_failure
from a2a_push.models import (
    Attempt,
    Delivery,
    DeliveryBody,
    DeliveryStatus,
    PushConfig,
    Receiver,
    Trigger,
)
from a2a_push.store.bodies import Key
from a2a_push.store.receivers import to_columns
from a2a_tasks import sealing
from a2a_tasks.models import Task

__all__ = [
    "LEASE",
    "QUERY",
    "SEALED",
    "SECRETS",
    "add_attempt",
    "give_up",
    "make_config",
    "make_delivery",
    "make_receiver",
    "share_body",
]

#: What must be on no page: the secrets of a webhook, as they are and sealed, a value of its URL's query, its lease.
QUERY, LEASE = "query-3b1d", "lease-77aa"
SEALED = ("token-7f3a", "credentials-91bc", "header-52de")
SECRETS = (*SEALED, QUERY, LEASE)

_numbers = itertools.count(1)


def make_receiver(address: str = "https://hooks.example.com/a2a", **columns: Any) -> Receiver:
    """A receiver that all is well with."""
    tenant = columns.get("tenant", "")
    digest = hashlib.sha256(f"{tenant}\n{address}".encode()).hexdigest()
    found, _ = Receiver.objects.update_or_create(
        digest=digest, defaults={"address": address, **columns}
    )
    return found


def give_up(receiver: Receiver) -> Receiver:
    """Have it be one that failed for six days."""
    now = timezone.now()
    failing = Breaker(failing_since=now.timestamp() - 6 * 86_400, in_a_row=9)
    state = record_failure(failing, now.timestamp(), ORDINARY, "answered 500")
    columns = {**to_columns(state), "disabled_at": now, "disabled_reason": state.reason}
    Receiver.objects.filter(pk=receiver.pk).update(**columns)
    receiver.refresh_from_db()
    return receiver


def make_config(task: Task, public_id: str = "c-1", **columns: Any) -> PushConfig:
    """A webhook that has every secret, and is held by a worker."""
    token, credentials, header = SEALED
    whole = {"token": token, "credentials": credentials, "headers": {"X-Key": header}}
    receiver = columns.pop("receiver", None) or make_receiver()
    values: dict[str, Any] = {
        "dialect": "v10",
        "url": f"{receiver.address}?key={QUERY}",
        "schemes": '["Bearer","Basic"]',
        "secret": sealing.seal(json.dumps(whole)),
        "token": LEASE,
        "lease_until": timezone.now(),
        "worker": "pusher-3",
    }
    return PushConfig.objects.create(
        task=task, public_id=public_id, receiver=receiver, **{**values, **columns}
    )


def make_delivery(
    config: PushConfig, status: DeliveryStatus = DeliveryStatus.PENDING, **columns: Any
) -> Delivery:
    """A delivery of a webhook."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "number": number,
        "through": number,
        "webhook_id": f"msg_{number:032}",
        "content_type": "application/a2a+json",
        "body": '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}',
        "settled_at": None if status == DeliveryStatus.PENDING else timezone.now(),
    }
    return Delivery.objects.create(
        config=config,
        task=config.task,
        receiver=config.receiver,
        dialect=config.dialect,
        status=status,
        **{**values, **columns},
    )


def share_body(delivery: Delivery, text: str) -> None:
    """A body beside the deliveries that it is the same for."""
    columns = {name: getattr(delivery, name) for name in Key._fields}
    DeliveryBody.objects.create(**columns, size=len(text), body=text)


def add_attempt(delivery: Delivery, status: int | None = 500, **columns: Any) -> Attempt:
    """An attempt that was answered by 500."""
    is_success = status is not None and status < 300
    values: dict[str, Any] = {
        "number": delivery.tries.count() + 1,
        "trigger": Trigger.SCHEDULE,
        "started_at": timezone.now(),
        "seconds": 0.25,
        "status": status,
        "fault": "" if is_success else "status" if status else "timeout",
        "detail": "" if is_success else f"answered {status}" if status else "no answer in 15 s",
        "worker": "pusher-3",
    }
    return Attempt.objects.create(delivery=delivery, **{**values, **columns})
