"""Webhooks in the admin: configurations, receivers, deliveries and attempts, with retries and replays.

Lists are read along indexes, and pages only read. Actions write through the store, after a confirmation.
"""

from a2a_console.admin.webhooks.attempt_admin import AttemptAdmin
from a2a_console.admin.webhooks.config_admin import ConfigAdmin
from a2a_console.admin.webhooks.delivery_admin import DeliveryAdmin
from a2a_console.admin.webhooks.receiver_admin import ReceiverAdmin

__all__ = ["AttemptAdmin", "ConfigAdmin", "DeliveryAdmin", "ReceiverAdmin"]
