"""THE TABLE: every operation of the protocol and the function that does it. Read this file first.

Bindings are handed this table and call nothing else, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2a_push.operations import not_supported
from a2a_tasks.operations.cancel_task import cancel_task
from a2a_tasks.operations.get_extended_agent_card import get_extended_agent_card
from a2a_tasks.operations.get_task import get_task
from a2a_tasks.operations.list_tasks import list_tasks
from a2a_tasks.operations.send_message import send_message
from a2a_tasks.operations.send_streaming_message import send_streaming_message
from a2a_tasks.operations.subscribe_to_task import subscribe_to_task

__all__ = ["TABLE"]

TABLE: Mapping[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "SendMessage": send_message,
    "SendStreamingMessage": send_streaming_message,
    "GetTask": get_task,
    "ListTasks": list_tasks,
    "CancelTask": cancel_task,
    "SubscribeToTask": subscribe_to_task,
    "CreateTaskPushNotificationConfig": not_supported,
    "GetTaskPushNotificationConfig": not_supported,
    "ListTaskPushNotificationConfigs": not_supported,
    "DeleteTaskPushNotificationConfig": not_supported,
    "GetExtendedAgentCard": get_extended_agent_card,
}
