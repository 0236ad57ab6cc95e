"""Why somebody has not been told of a task yet: what its webhooks wait for."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_push.admin.reading import wait_of, with_company
from a2a_push.admin.waiting import Wait, Why
from a2a_push.models import Delivery, Status
from a2a_tasks.store.situation import Link, Needs, Reason

__all__ = ["KIND", "told_later"]

#: What its reasons are called among those of a task.
KIND = "webhook"
#: Pending deliveries of one task that are looked at: a webhook has one, or a few.
LOOKED = 50
#: Nothing is the matter with those.
IN_HAND = {Why.UNDER_WAY, Why.PLACE, Why.TURN}
#: Nothing goes on until somebody enables it.
DISABLED = {Why.WEBHOOK_DISABLED, Why.RECEIVER_DISABLED}


def told_later(task: int) -> Iterator[Reason]:
    """What the webhooks of a task wait for, as far as they have to wait."""
    pending = Delivery.objects.filter(task=task, status=Status.PENDING)
    for row in with_company(pending).order_by("pk")[:LOOKED]:
        wait = wait_of(row)
        if wait.why not in IN_HAND:
            yield _reason(row, wait)


def _reason(row: Delivery, wait: Wait) -> Reason:
    disabled = wait.why in DISABLED
    webhook = row.config.public_id if row.config else "taken away"
    return Reason(
        kind=KIND,
        sentence=f"The webhook {webhook} is to be told of event {row.number}. {wait.sentence}",
        next="Nothing, until somebody enables it." if disabled else "It is tried again.",
        at=wait.until,
        needs=Needs.OPERATOR if disabled else Needs.NOBODY,
        link=Link("a2a_push.delivery", row.pk),
    )
