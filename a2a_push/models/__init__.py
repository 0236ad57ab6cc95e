"""The tables of webhooks: columns, constraints, indexes; no behaviour. Only the store writes them."""

from a2a_push.models.delivery import Attempt, Delivery, DeliveryBody, DeliveryStatus, Trigger
from a2a_push.models.push_config import PushConfig
from a2a_push.models.receiver import Receiver

__all__ = [
    "Attempt",
    "Delivery",
    "DeliveryBody",
    "PushConfig",
    "Receiver",
    "DeliveryStatus",
    "Trigger",
]
