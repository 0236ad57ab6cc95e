"""The reasons why webhooks of a task have not been notified yet."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import BooleanField, Case, QuerySet, Value, When

from a2a_console.diagnosis.deliveries import wait_of, with_company
from a2a_console.diagnosis.delivery_waits import Wait, Why
from a2a_console.diagnosis.facts import Needs, Reason, RowLink
from a2a_push.models import Delivery, DeliveryStatus, PushConfig
from a2a_tasks.models import LONG_COLUMNS

__all__ = ["KIND", "explain_deliveries", "without_secrets"]

#: The kind of these reasons among those of a task.
KIND = "webhook"
#: The largest number of pending deliveries of one task that are read: a webhook has one or a few.
LOOKED = 50
#: Reasons that are no trouble.
IN_HAND = {Why.UNDER_WAY, Why.PLACE, Why.TURN}
#: Reasons that last until an operator enables the webhook or the receiver.
DISABLED = {Why.WEBHOOK_DISABLED, Why.RECEIVER_DISABLED}


def explain_deliveries(task: int) -> Iterator[Reason]:
    """Yield the reasons why webhooks of a task wait; none for deliveries without trouble."""
    pending = Delivery.objects.filter(task=task, status=DeliveryStatus.PENDING)
    for row in with_company(pending).order_by("pk")[:LOOKED]:
        wait = wait_of(row)
        if wait.why not in IN_HAND:
            yield _reason(row, wait)


def _reason(row: Delivery, wait: Wait) -> Reason:
    disabled = wait.why in DISABLED
    webhook = row.config.public_id if row.config else "(deleted)"
    return Reason(
        kind=KIND,
        sentence=f"The webhook {webhook} is to be told of event {row.number}. {wait.sentence}",
        next="Nothing, until a user enables it." if disabled else "It is tried again.",
        at=wait.until,
        needs=Needs.OPERATOR if disabled else Needs.NOBODY,
        link=RowLink("a2a_push.delivery", row.pk),
    )


def without_secrets(rows: QuerySet[PushConfig]) -> QuerySet[PushConfig]:
    """Load each with its task and its receiver, and add `has_secrets`. Secrets and long columns are not read."""
    unread = ("secret", "token", *(f"task__{name}" for name in LONG_COLUMNS))
    has_secrets = Case(
        When(secret="", then=Value(False)), default=Value(True), output_field=BooleanField()
    )
    return rows.select_related("task", "receiver").defer(*unread).annotate(has_secrets=has_secrets)
