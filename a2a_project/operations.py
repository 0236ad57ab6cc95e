"""THE TABLE: every operation of the protocol and the function that does it. Read this file first.

Bindings are handed this table and call nothing else, so that they cannot differ. `in_line`: it waits for the database
from beginning to end; the sends take their place in the line themselves, and leave it before they wait for an agent.
`with_links`: where what it answers refers to a file of the task, there is a URL to download it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from a2a_push.operations.push_configs import (
    create_push_config,
    delete_push_config,
    get_push_config,
    list_push_configs,
)
from a2a_tasks.operations.cancel_task import cancel_task
from a2a_tasks.operations.files import with_links
from a2a_tasks.operations.get_agent_card import get_agent_card
from a2a_tasks.operations.get_extended_agent_card import get_extended_agent_card
from a2a_tasks.operations.get_task import get_task
from a2a_tasks.operations.line import counted, in_line
from a2a_tasks.operations.list_tasks import list_tasks
from a2a_tasks.operations.send_message import send_message
from a2a_tasks.operations.send_streaming_message import send_streaming_message
from a2a_tasks.operations.subscribe_to_task import subscribe_to_task

__all__ = ["TABLE"]

TABLE: Mapping[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "SendMessage": with_links(send_message),
    "SendStreamingMessage": with_links(counted(send_streaming_message)),
    "GetTask": with_links(in_line(get_task)),
    "ListTasks": with_links(in_line(list_tasks)),
    "CancelTask": with_links(in_line(cancel_task)),
    "SubscribeToTask": with_links(in_line(counted(subscribe_to_task))),
    "CreateTaskPushNotificationConfig": in_line(create_push_config),
    "GetTaskPushNotificationConfig": in_line(get_push_config),
    "ListTaskPushNotificationConfigs": in_line(list_push_configs),
    "DeleteTaskPushNotificationConfig": in_line(delete_push_config),
    "GetAgentCard": get_agent_card,
    "GetExtendedAgentCard": get_extended_agent_card,
}
