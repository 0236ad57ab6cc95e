"""Parameters of the operations, as values; equal for every dialect and binding (A2A 1.0 §3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.protocol.values import Message, PushConfig, TaskState

MAX_PAGE, DEFAULT_PAGE = 100, 50


@dataclass(frozen=True, kw_only=True, slots=True)
class SendMessageRequest:
    """SendMessage and SendStreamingMessage (§3.1.1, §3.1.2)."""

    message: Message
    tenant: str = ""
    accepted_output_modes: tuple[str, ...] = ()
    #: Maximum number of messages of the history in the answer; None = all.
    history_length: int | None = None
    return_immediately: bool = False
    #: The webhook to store with the task, before anything else happens to it.
    push_config: PushConfig | None = None
    metadata: Mapping[str, Any] | None = None
    #: The id that the client gives the task, whether it exists or not (the oldest dialects); empty = the host makes
    #: one.
    named: str = ""
    #: The message reopens an ended task, if that was made in a dialect that allows it, instead of being refused.
    reopens: bool = False
    #: The answer must be a task: the dialect has no direct Message.
    wants_task: bool = False
    #: States at which a stream of this message ends although the task goes on.
    pauses: frozenset[TaskState] = frozenset({TaskState.INPUT_REQUIRED})


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
    #: Maximum number of messages of the history in the answer; None = all.
    history_length: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscribeToTaskRequest:
    """SubscribeToTask (§3.1.6)."""

    id: str
    tenant: str = ""
    #: A task that has ended is returned instead of refused (before 1.0).
    lenient: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CreatePushConfigRequest:
    """CreateTaskPushNotificationConfig (§3.1.7). `config` names the task; its own id may be empty."""

    config: PushConfig
    #: Delete the task's config instead of creating one (0.1).
    clears: bool = False
    tenant: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GetPushConfigRequest:
    """GetTaskPushNotificationConfig (§3.1.8). An empty id means the task's only, or oldest, config."""

    task_id: str
    id: str = ""
    tenant: str = ""
    #: Without a config the answer is null instead of an error (0.1 and older).
    lenient: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ListPushConfigsRequest:
    """ListTaskPushNotificationConfigs (§3.1.9)."""

    task_id: str
    tenant: str = ""
    page_size: int = DEFAULT_PAGE
    page_token: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletePushConfigRequest:
    """DeleteTaskPushNotificationConfig (§3.1.10)."""

    task_id: str
    id: str
    tenant: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GetAgentCardRequest:
    """The public card, where a dialect has it as an operation (seed-0)."""


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
    | CreatePushConfigRequest
    | GetPushConfigRequest
    | ListPushConfigsRequest
    | DeletePushConfigRequest
    | GetAgentCardRequest
    | GetExtendedAgentCardRequest
)
