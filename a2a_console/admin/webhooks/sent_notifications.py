"""The newest deliveries of a task, webhook or receiver, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from a2a_console.admin.webhooks import cells
from a2a_console.diagnosis.deliveries import last_attempt, reason_of, with_company
from a2a_push.models import Attempt, Delivery, DeliveryStatus

__all__ = ["DeliveryLine", "newest_deliveries"]

#: The largest number of deliveries on the page of another object.
ROWS = 20


@dataclass(frozen=True, kw_only=True)
class DeliveryLine:
    """A delivery in one line."""

    row: Delivery
    events: str
    last: Attempt | None
    reason: str
    #: The action that the user may take: `replay`, or `retry` while the delivery is pending; empty = none.
    verb: str = ""


def newest_deliveries(request: HttpRequest, **of: Any) -> list[DeliveryLine]:
    """Return the newest deliveries with these values; none if the user may not view deliveries."""
    if not may_view(request):
        return []
    rows = with_company(Delivery.objects.filter(**of)).order_by("-pk")[:ROWS]
    may_send = request.user.has_perm("a2a_push.change_delivery")
    return [_describe(row, may_send=may_send) for row in rows]


def may_view(request: HttpRequest) -> bool:
    """Return whether the user may view deliveries, as the admin of deliveries does."""
    rights = ("a2a_push.view_delivery", "a2a_push.change_delivery")
    return any(map(request.user.has_perm, rights))


def _describe(row: Delivery, *, may_send: bool) -> DeliveryLine:
    return DeliveryLine(
        row=row,
        events=cells.events(row),
        last=last_attempt(row),
        reason=reason_of(row),
        verb=_verb(row) if may_send else "",
    )


def _verb(row: Delivery) -> str:
    """Return the action that the page of the delivery offers."""
    if row.status == DeliveryStatus.PENDING:
        return "retry"
    return "replay" if row.config_id is not None else ""
