"""The canonical objects of A2A 1.0 (§4): frozen, keyword-only, validated once on input.

Values that the store keeps as JSON text stay JSON text here (`Raw`): a stored artifact travels to a socket without
being parsed. Field names are the specification's, in snake_case; they are camelCase on the wire.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

__all__ = [
    "UNSET",
    "Artifact",
    "ArtifactUpdate",
    "Message",
    "Part",
    "PushConfig",
    "PushConfigPage",
    "Raw",
    "Role",
    "Task",
    "TaskPage",
    "TaskState",
    "TaskStatus",
    "UnsetType",
    "replace",
]


class TaskState(enum.StrEnum):
    """The states of a task (A2A 1.0 §4.1.3), by their wire names."""

    SUBMITTED = "TASK_STATE_SUBMITTED"  #: accepted, not yet begun
    WORKING = "TASK_STATE_WORKING"  #: an agent works on it
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"  #: waits for a message of the client
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"  #: waits for a credential
    COMPLETED = "TASK_STATE_COMPLETED"  #: ended with success
    FAILED = "TASK_STATE_FAILED"  #: ended by an error
    CANCELED = "TASK_STATE_CANCELED"  #: ended by the client or an operator
    REJECTED = "TASK_STATE_REJECTED"  #: refused by the agent

    @property
    def word(self) -> str:
        """The state in plain words: `input-required`."""
        return self.value.removeprefix("TASK_STATE_").lower().replace("_", "-")


class Role(enum.StrEnum):
    """The sender of a message (A2A 1.0 §4.1.5)."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of all wire values: absent members are left out when encoded."""


class Part(_Value, frozen=True, kw_only=True):
    """One piece of content: exactly one of text, raw (base64), url and data (A2A 1.0 §4.1.6)."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Mapping[str, Any] | None = None
    filename: str | None = None
    media_type: str | None = None


class Message(_Value, frozen=True, kw_only=True):
    """One turn of a conversation (A2A 1.0 §4.1.4)."""

    message_id: str
    context_id: str | None = None
    task_id: str | None = None
    role: Role
    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Artifact(_Value, frozen=True, kw_only=True):
    """A result of a task (A2A 1.0 §4.1.7)."""

    artifact_id: str
    name: str | None = None
    description: str | None = None
    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] | None = None
    extensions: tuple[str, ...] = ()


class ArtifactUpdate(_Value, frozen=True, kw_only=True):
    """The content of an artifact event, without the ids of its task (A2A 1.0 §4.2.2)."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Mapping[str, Any] | None = None


class TaskStatus(_Value, frozen=True, kw_only=True):
    """State, time (RFC 3339, UTC, milliseconds) and an optional stored Message (A2A 1.0 §4.1.2)."""

    state: TaskState
    message: Raw | None = None
    timestamp: str


class Task(_Value, frozen=True, kw_only=True):
    """A task as a client sees it (A2A 1.0 §4.1.1). Artifacts and history are stored text, oldest first."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: list[Raw] | UnsetType = UNSET
    history: list[Raw] | UnsetType = UNSET
    metadata: Raw | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of ListTasks (A2A 1.0 §3.1.4): all four members are always present."""

    tasks: list[Task]
    next_page_token: str
    page_size: int
    total_size: int


class PushConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook for a task's events (A2A 1.0 §4.3.1), with the fields that the older dialects add."""

    url: str
    id: str = ""
    task_id: str = ""
    tenant: str = ""
    #: Sent with each notification, so that its receiver recognizes the sender; a secret.
    token: str = ""
    #: Authentication schemes; A2A 1.0 knows one, the older dialects list several.
    schemes: tuple[str, ...] = ()
    #: Credentials for the scheme; a secret.
    credentials: str = ""
    #: Headers to send unchanged (seed-0); secrets.
    headers: Mapping[str, str] = {}
    #: Code of the dialect that registered the webhook; its notifications are written in it.
    dialect: str = ""
    #: Path of the config in the request, for errors: `configuration.pushNotificationConfig`.
    path: str = ""

    def __repr__(self) -> str:
        """Omit the secrets: values end up in logs."""
        return f"PushConfig(id={self.id!r}, task_id={self.task_id!r}, dialect={self.dialect!r})"


class PushConfigPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of ListTaskPushNotificationConfigs (A2A 1.0 §3.1.9)."""

    configs: list[PushConfig]
    next_page_token: str = ""


#: Return a copy of a value with other members.
replace = msgspec.structs.replace
