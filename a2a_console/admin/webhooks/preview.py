"""Warnings before a replay, about deliveries that will not be sent normally."""

from __future__ import annotations

from django.db.models import QuerySet

from a2a_push.models import Delivery
from a2a_push.store.retries import forecast

__all__ = ["HELD_BACK", "preview_warnings"]

HELD_BACK = "Not sent because an operator disabled the receiver: {}. Enable the receiver first."
ON_TRIAL = (
    "Deliveries to a receiver or webhook that was disabled automatically: {}. It is enabled again at once; "
    "after ten more failures before a first success, or a 410, it is disabled again and its pending deliveries are dead."
)


def preview_warnings(deliveries: QuerySet[Delivery]) -> list[str]:
    """Return warnings with the numbers of deliveries that are held back, and of those to disabled receivers."""
    prospect = forecast(deliveries)
    warnings = [(HELD_BACK, prospect.held_back), (ON_TRIAL, prospect.on_trial)]
    return [text.format(count) for text, count in warnings if count]
