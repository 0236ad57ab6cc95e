"""Warnings before a replay, about deliveries that will not be sent normally."""

from __future__ import annotations

from django.db.models import QuerySet

from a2a_push.models import Delivery
from a2a_push.store.retries import forecast

__all__ = ["HELD_BACK", "preview_warnings"]

HELD_BACK = "Not sent because an operator disabled the endpoint: {}. Enable the endpoint first."
ON_TRIAL = (
    "Deliveries to an endpoint or webhook that was disabled automatically: {}. A first success enables it again; "
    "ten more consecutive failures, or a 410, disable it again and its pending deliveries fail."
)


def preview_warnings(deliveries: QuerySet[Delivery]) -> list[str]:
    """Return warnings with the numbers of deliveries that are held back, and of those to disabled receivers."""
    prospect = forecast(deliveries)
    warnings = [(HELD_BACK, prospect.held_back), (ON_TRIAL, prospect.on_trial)]
    return [text.format(count) for text, count in warnings if count]
