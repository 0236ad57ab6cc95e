"""What the operations are asked, as values; the same for every dialect and binding (A2A 1.0 §3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.protocol.values import Message, TaskState

MAX_PAGE, DEFAULT_PAGE = 100, 50


@dataclass(frozen=True, kw_only=True, slots=True)
class SendMessageRequest:
    """SendMessage and SendStreamingMessage (§3.1.1, §3.1.2)."""

    message: Message
    tenant: str = ""
    accepted_output_modes: tuple[str, ...] = ()
    #: None = all of it.
    history_length: int | None = None
    return_immediately: bool = False
    push_config: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GetTaskRequest:
    """GetTask (§3.1.3)."""

    id: str
    tenant: str = ""
    history_length: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListTasksRequest:
    """ListTasks (§3.1.4). `status_timestamp_after` is RFC 3339 in UTC with milliseconds, inclusive."""

    tenant: str = ""
    context_id: str | None = None
    status: TaskState | None = None
    page_size: int = DEFAULT_PAGE
    page_token: str = ""
    history_length: int = 0
    status_timestamp_after: str | None = None
    include_artifacts: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CancelTaskRequest:
    """CancelTask (§3.1.5)."""

    id: str
    tenant: str = ""
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscribeToTaskRequest:
    """SubscribeToTask (§3.1.6)."""

    id: str
    tenant: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PushConfigRequest:
    """The four push notification operations (§3.1.7 to §3.1.10)."""

    task_id: str
    id: str = ""
    tenant: str = ""
    config: Mapping[str, Any] | None = None
    page_size: int = DEFAULT_PAGE
    page_token: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GetExtendedAgentCardRequest:
    """GetExtendedAgentCard (§3.1.11)."""

    tenant: str = ""


Request = (
    SendMessageRequest
    | GetTaskRequest
    | ListTasksRequest
    | CancelTaskRequest
    | SubscribeToTaskRequest
    | PushConfigRequest
    | GetExtendedAgentCardRequest
)
