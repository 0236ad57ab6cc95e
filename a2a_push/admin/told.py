"""The newest deliveries of something, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from a2a_push.admin import cells
from a2a_push.admin.reading import last_attempt, reason_of, with_company
from a2a_push.models import Attempt, Delivery, Status

__all__ = ["Told", "newest_deliveries"]

#: Deliveries on the page of something else.
ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Told:
    """A delivery in a line."""

    row: Delivery
    events: str
    last: Attempt | None
    reason: str
    #: What the user may do with it: `replay`, or `retry` while it waits; empty = nothing.
    verb: str = ""


def newest_deliveries(request: HttpRequest, **of: Any) -> list[Told]:
    """The newest ones with these columns; none for a user who may not view deliveries."""
    if not may_view(request):
        return []
    rows = with_company(Delivery.objects.filter(**of)).order_by("-pk")[:ROWS]
    may_send = request.user.has_perm("a2a_push.change_delivery")
    return [_told(row, may_send=may_send) for row in rows]


def may_view(request: HttpRequest) -> bool:
    """Tell whether the user may view deliveries, as the admin of deliveries does."""
    rights = ("a2a_push.view_delivery", "a2a_push.change_delivery")
    return any(map(request.user.has_perm, rights))


def _told(row: Delivery, *, may_send: bool) -> Told:
    return Told(
        row=row,
        events=cells.events(row),
        last=last_attempt(row),
        reason=reason_of(row),
        verb=_verb(row) if may_send else "",
    )


def _verb(row: Delivery) -> str:
    """What a delivery can have done to it, as its own page offers it."""
    if row.status == Status.PENDING:
        return "retry"
    return "replay" if row.config_id is not None else ""
