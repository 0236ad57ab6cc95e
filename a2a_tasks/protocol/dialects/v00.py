"""A2A as first published, April 2025 (0.0): `tasks/send`, sessions, parts with a `type`, artifacts with an index."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import DialectFeatures, Subject
from a2a_tasks.protocol.dialects.reading import (
    WORD_ROLES,
    identifier,
    identity,
    parts,
    push_config,
    read_tagged_part,
)
from a2a_tasks.protocol.dialects.trees import INTERNAL, INVALID, Tree, TreeDialect, write_tagged
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.lifecycle import INTERRUPTED
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    CreatePushConfigRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.values import Message, PushConfig, Raw, Role, Task, TaskState

__all__ = ["V00"]

S = TaskState


class V00(TreeDialect):
    """The dialect 0.0; see `Dialect` and `TreeDialect` for the purpose of each method."""

    code, version, title = "v00", "0.0", "0.0 (April 2025)"
    path, admits = "0.0", frozenset({"0.0"})
    card_members = frozenset({"name", "url", "version", "capabilities", "skills"})
    skill_members = ("id", "name")
    features = DialectFeatures(
        client_names_task=True,
        history=0,
        reopens=True,
        direct_message=False,
        pauses=INTERRUPTED,
        lenient_subscribe=True,
        streams_refusals=True,
        index=True,
        one_webhook=True,
        degraded={S.REJECTED: S.FAILED, S.AUTH_REQUIRED: S.INPUT_REQUIRED},
    )
    methods = {
        "tasks/send": "SendMessage",
        "tasks/sendSubscribe": "SendStreamingMessage",
        "tasks/get": "GetTask",
        "tasks/cancel": "CancelTask",
        "tasks/resubscribe": "SubscribeToTask",
        "tasks/pushNotification/set": "CreateTaskPushNotificationConfig",
        "tasks/pushNotification/get": "GetTaskPushNotificationConfig",
    }
    states = {
        S.SUBMITTED: "submitted",
        S.WORKING: "working",
        S.INPUT_REQUIRED: "input-required",
        S.AUTH_REQUIRED: "input-required",
        S.COMPLETED: "completed",
        S.FAILED: "failed",
        S.CANCELED: "canceled",
        S.REJECTED: "failed",
    }
    faces = {
        errors.TaskEnded: INVALID,
        errors.InvalidAgentResponse: INTERNAL,
    }
    #: Errors whose `data` must be null by the published schema.
    bare = (
        errors.TaskNotFound,
        errors.TaskNotCancelable,
        errors.PushNotificationNotSupported,
        errors.UnsupportedOperation,
        errors.MethodNotFound,
    )

    def _message(self, fields: Fields, session: str | None) -> Message:
        role = WORD_ROLES.get(fields.string("role"))
        if role is None:
            fields.bad("role", "must be user or agent")
        return Message(
            message_id=str(uuid.uuid4()),  # the dialect has no message ids
            context_id=session,
            role=role or Role.USER,
            parts=parts(fields, lambda part: read_tagged_part(part, "type")),
            metadata=fields.struct("metadata"),
        )

    def read_send(self, fields: Fields) -> SendMessageRequest:
        session = identifier(fields, "session_id")
        message = fields.object("message", required=True)
        name = identifier(fields, "id", required=True) or ""
        length = fields.length("history_length")
        return SendMessageRequest(
            message=self._message(message or Fields({}), session),
            named=name,
            reopens=self.features.reopens and self.switches.v01_reopen_terminal,
            wants_task=not self.features.direct_message,
            pauses=self.features.pauses,
            # Modes were words before they were media types.
            accepted_output_modes=tuple(
                cards.MEDIA_TYPES.get(mode, mode)
                for mode in fields.strings("accepted_output_modes")
            ),
            history_length=self.features.history if length is None else length,
            push_config=self.read_inline_push(fields, name),
            metadata=fields.struct("metadata"),
        )

    def read_inline_push(self, fields: Fields, task_id: str) -> PushConfig | None:
        """Read the push config of a send."""
        found = fields.object("push_notification")
        return push_config(found, self.code, task_id=task_id) if found else None

    def read_get(self, fields: Fields) -> GetTaskRequest:
        length = fields.length("history_length")
        return GetTaskRequest(
            id=identity(fields), history_length=self.features.history if length is None else length
        )

    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        return CancelTaskRequest(
            id=identity(fields),
            metadata=fields.struct("metadata"),
            history_length=self.features.history,
        )

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        return SubscribeToTaskRequest(id=identity(fields), lenient=True)

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        task_id = identity(fields)
        config = fields.object("push_notification_config", required=True)
        return CreatePushConfigRequest(
            config=push_config(config or Fields({}), self.code, task_id=task_id)
        )

    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        return GetPushConfigRequest(task_id=identity(fields), lenient=True)

    def part(self, part: Tree) -> Tree:
        return write_tagged(part, "type")

    def message(self, message: Tree) -> Tree:
        metadata = {"metadata": message["metadata"]} if message.get("metadata") else {}
        return {
            "role": self.roles[Role(message["role"])],
            "parts": [self.part(part) for part in message["parts"]],
            **metadata,
        }

    def artifact(self, artifact: Tree, position: int) -> Tree:
        members: Tree = {key: artifact[key] for key in ("name", "description") if key in artifact}
        return {
            **members,
            "parts": [self.part(part) for part in artifact["parts"]],
            "index": position,
            "metadata": {**artifact.get("metadata", {}), "artifactId": artifact["artifactId"]},
        }

    def task(self, task: Task) -> Tree:
        tree = {"id": task.id, "sessionId": task.context_id, "status": self.status_of(task.status)}
        artifacts, history = self.artifacts(task.artifacts), self.messages(task.history)
        optional = {
            "artifacts": artifacts,
            "history": history,
            "metadata": task.metadata if self.has_metadata else None,
        }
        return tree | {key: value for key, value in optional.items() if value}

    def status_event(self, subject: Subject, status: Tree, more: Tree, *, final: bool) -> Tree:
        return {"id": subject.id, "status": status, "final": final, **more}

    def artifact_event(self, subject: Subject, update: Tree) -> Tree:
        artifact = self.artifact(
            update["artifact"], subject.position(update["artifact"]["artifactId"])
        )
        flags = {key: update[key] for key in ("append", "lastChunk") if key in update}
        more = {"metadata": update["metadata"]} if update.get("metadata") else {}
        return {"id": subject.id, "artifact": artifact | flags, **more}

    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        """Return a status event for a Task: streams of this dialect contain only events."""
        if isinstance(item, Raw):
            return super().first(subject, item, ended=ended)
        return [self._write_status(subject, item, final=ended)]

    def push_config(self, config: PushConfig) -> Tree:
        authentication = (
            {"authentication": {"schemes": list(config.schemes)}} if config.schemes else {}
        )
        return {
            "id": config.task_id,
            "pushNotificationConfig": {"url": config.url, **authentication},
        }

    def detail(self, fault: A2AError) -> Any:
        if isinstance(fault, self.bare) and not isinstance(fault, errors.TaskEnded):
            return None
        if isinstance(fault, errors.ContextMismatch):
            return {"errors": [{"field": "sessionId", "message": "is not the session of the task"}]}
        return super().detail(fault)

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.oldest(card, url)
