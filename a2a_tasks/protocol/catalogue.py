"""The eleven operations of A2A 1.0 (§3.1, §5.3) as data: the bindings, the card and the docs read them here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BY_NAME", "OPERATIONS", "Operation"]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation: its name, its HTTP verb and path, whether it streams, and the capability it needs in the card."""

    name: str
    verb: str
    path: str
    streams: bool = False
    #: Capability of the agent without which the operation is refused: "streaming" or "push_notifications".
    needs: str = ""


SEND_MESSAGE = Operation(name="SendMessage", verb="POST", path="message:send")
SEND_STREAMING_MESSAGE = Operation(
    name="SendStreamingMessage", verb="POST", path="message:stream", streams=True, needs="streaming"
)
GET_TASK = Operation(name="GetTask", verb="GET", path="tasks/{id}")
LIST_TASKS = Operation(name="ListTasks", verb="GET", path="tasks")
CANCEL_TASK = Operation(name="CancelTask", verb="POST", path="tasks/{id}:cancel")
SUBSCRIBE_TO_TASK = Operation(
    name="SubscribeToTask",
    verb="POST",
    path="tasks/{id}:subscribe",
    streams=True,
    needs="streaming",
)
CREATE_PUSH_CONFIG = Operation(
    name="CreateTaskPushNotificationConfig",
    verb="POST",
    path="tasks/{taskId}/pushNotificationConfigs",
    needs="push_notifications",
)
GET_PUSH_CONFIG = Operation(
    name="GetTaskPushNotificationConfig",
    verb="GET",
    path="tasks/{taskId}/pushNotificationConfigs/{id}",
    needs="push_notifications",
)
LIST_PUSH_CONFIGS = Operation(
    name="ListTaskPushNotificationConfigs",
    verb="GET",
    path="tasks/{taskId}/pushNotificationConfigs",
    needs="push_notifications",
)
DELETE_PUSH_CONFIG = Operation(
    name="DeleteTaskPushNotificationConfig",
    verb="DELETE",
    path="tasks/{taskId}/pushNotificationConfigs/{id}",
    needs="push_notifications",
)
GET_EXTENDED_AGENT_CARD = Operation(
    name="GetExtendedAgentCard", verb="GET", path="extendedAgentCard"
)
#: The public card as an operation (seed-0: `agent/getCard`); in other dialects it is only a page.
GET_AGENT_CARD = Operation(name="GetAgentCard", verb="GET", path=".well-known/agent-card.json")

OPERATIONS: tuple[Operation, ...] = (
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    GET_TASK,
    LIST_TASKS,
    CANCEL_TASK,
    SUBSCRIBE_TO_TASK,
    CREATE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
)
BY_NAME = {operation.name: operation for operation in (*OPERATIONS, GET_AGENT_CARD)}
