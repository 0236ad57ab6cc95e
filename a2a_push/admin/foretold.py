"""What the pages say before something is sent again, if not all of it will simply be sent."""

from __future__ import annotations

from django.db.models import QuerySet

from a2a_push.models import Delivery
from a2a_push.store.trials import foreseen

__all__ = ["HELD_BACK", "foretold"]

HELD_BACK = "Will not be sent, because somebody has disabled their receiver: {}. Enable it first."
ON_TRIAL = (
    "Will be tried although their receiver or webhook was given up: {}. It is trusted again with the first that arrives; "
    "after ten more failures in a row, or another 410, it is given up again, and what waits dies."
)


def foretold(deliveries: QuerySet[Delivery]) -> list[str]:
    """Warn of those that are not sent, and of those that are though nothing is sent there any more."""
    prospect = foreseen(deliveries)
    warnings = [(HELD_BACK, prospect.held_back), (ON_TRIAL, prospect.on_trial)]
    return [text.format(count) for text, count in warnings if count]
