"""The back office of webhooks: who is told of what, how that went, why something waits; and sending it again.

It stands in the rooms of the tasks' back office and uses their furniture: lists along indexes, pages that only look. What it
changes it changes through the store, and asks first.
"""

from a2a_push.admin.attempt_admin import AttemptAdmin
from a2a_push.admin.config_admin import ConfigAdmin
from a2a_push.admin.delivery_admin import DeliveryAdmin
from a2a_push.admin.receiver_admin import ReceiverAdmin
from a2a_push.admin.task_lines import attempts
from a2a_push.admin.task_section import webhooks
from a2a_push.admin.told_later import told_later
from a2a_tasks.admin import beside
from a2a_tasks.store import situation

__all__ = ["AttemptAdmin", "ConfigAdmin", "DeliveryAdmin", "ReceiverAdmin"]

beside.show(webhooks)
beside.tell("webhook attempts", attempts)
situation.also(told_later)
