"""The common base of 0.2, 0.3 and the draft; in the first two, `kind` says the type of each object."""

from __future__ import annotations

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
from a2a_tasks.protocol.dialects.trees import INVALID, Tree, TreeDialect, write_tagged
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.requests import (
    MAX_PAGE,
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListPushConfigsRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.values import UNSET, Message, Part, PushConfig, Role, Task, TaskState

__all__ = ["Kinds"]

S = TaskState


class Kinds(TreeDialect):
    """The base class; see `Dialect` and `TreeDialect` for the purpose of each method."""

    features = DialectFeatures(lenient_subscribe=True, streams_refusals=True)
    card_members = cards.ABOUT | cards.MODES | {"url", "protocolVersion"}
    methods = {
        "message/send": "SendMessage",
        "message/stream": "SendStreamingMessage",
        "tasks/get": "GetTask",
        "tasks/cancel": "CancelTask",
        "tasks/resubscribe": "SubscribeToTask",
        "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    }
    states = {state: state.word for state in S}
    faces = {errors.TaskEnded: INVALID}

    # -- reading ---------------------------------------------------------------------------------------------------

    def read_part(self, fields: Fields) -> Part:
        """Read a part of a message."""
        return read_tagged_part(fields, "kind")

    def read_role(self, fields: Fields) -> Role:
        """Read the role of a message's sender."""
        found = WORD_ROLES.get(fields.string("role"))
        if found is None:
            fields.bad("role", "must be user or agent")
        return found or Role.USER

    def read_parts(self, fields: Fields) -> tuple[Part, ...]:
        """Read the parts of a message."""
        return parts(fields, self.read_part)

    def read_message(self, fields: Fields, message_id: str | None = None) -> Message:
        """Read a client's message; `message_id` is the id that old samples have one level up."""
        if self.kind("message") and fields.value("kind") not in (None, "message"):
            fields.bad("kind", "must be message")
        found = identifier(fields, "message_id", required=message_id is None) or message_id
        return Message(
            message_id=found or "",
            context_id=identifier(fields, "context_id"),
            task_id=fields.string("task_id"),
            role=self.read_role(fields),
            parts=self.read_parts(fields),
            metadata=fields.struct("metadata"),
            extensions=fields.strings("extensions"),
            reference_task_ids=fields.strings("reference_task_ids"),
        )

    def message_of(self, fields: Fields) -> Fields | None:
        """Return the member of a send that contains the message."""
        return fields.object("message", required=True)

    def read_send(self, fields: Fields) -> SendMessageRequest:
        message = self.message_of(fields)
        configuration = fields.object("configuration") or Fields({}, "", fields.violations)
        read = self.read_message(message or Fields({}), identifier(fields, "message_id"))
        return SendMessageRequest(
            message=read,
            accepted_output_modes=configuration.strings("accepted_output_modes"),
            history_length=configuration.length("history_length"),
            return_immediately=not self.read_waits(fields, configuration),
            pauses=self.features.pauses,
            push_config=self.read_inline_push(configuration),
            metadata=fields.struct("metadata"),
        )

    def read_waits(self, fields: Fields, configuration: Fields) -> bool:
        """Return whether the client waits for the task to settle."""
        blocking = configuration.boolean("blocking")
        return self.features.waits if blocking is None else blocking

    def read_inline_push(self, configuration: Fields) -> PushConfig | None:
        """Read the push config of a send."""
        found = configuration.object("push_notification_config")
        return push_config(found, self.code) if found else None

    def read_get(self, fields: Fields) -> GetTaskRequest:
        return GetTaskRequest(id=identity(fields), history_length=fields.length("history_length"))

    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        return CancelTaskRequest(id=identity(fields), metadata=fields.struct("metadata"))

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        return SubscribeToTaskRequest(id=identity(fields), lenient=self.features.lenient_subscribe)

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        task_id = identity(fields, "task_id")
        config = fields.object("push_notification_config", required=True)
        return CreatePushConfigRequest(
            config=push_config(config or Fields({}), self.code, task_id=task_id)
        )

    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        found = fields.string("push_notification_config_id")
        return GetPushConfigRequest(task_id=identity(fields), id=found or "")

    def read_list_push(self, fields: Fields) -> ListPushConfigsRequest:
        return ListPushConfigsRequest(task_id=identity(fields), page_size=MAX_PAGE)

    def read_delete_push(self, fields: Fields) -> DeletePushConfigRequest:
        return DeletePushConfigRequest(
            task_id=identity(fields), id=identity(fields, "push_notification_config_id")
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    def kind(self, kind: str) -> Tree:
        """Return the discriminator of an object."""
        return {"kind": kind}

    def part(self, part: Tree) -> Tree:
        return write_tagged(part, "kind")

    def message(self, message: Tree) -> Tree:
        return {
            **self.kind("message"),
            **message,
            "role": self.roles[Role(message["role"])],
            "parts": [self.part(part) for part in message["parts"]],
        }

    def artifact(self, artifact: Tree, position: int) -> Tree:
        return {**artifact, "parts": [self.part(part) for part in artifact["parts"]]}

    def task(self, task: Task) -> Tree:
        optional = {"history": self.messages(task.history), "metadata": task.metadata}
        artifacts = {} if task.artifacts is UNSET else {"artifacts": self.artifacts(task.artifacts)}
        return {
            **self.kind("task"),
            "id": task.id,
            "contextId": task.context_id,
            "status": self.status_of(task.status),
            **artifacts,
            **{key: value for key, value in optional.items() if value},
        }

    def ids(self, subject: Subject) -> Tree:
        """Return the ids of a stream item."""
        return {"taskId": subject.id, "contextId": subject.context_id}

    def status_event(self, subject: Subject, status: Tree, more: Tree, *, final: bool) -> Tree:
        ids = {**self.kind("status-update"), **self.ids(subject)}
        return {**ids, "status": status, "final": final, **more}

    def artifact_event(self, subject: Subject, update: Tree) -> Tree:
        ids = {**self.kind("artifact-update"), **self.ids(subject)}
        return {**ids, **update, "artifact": self.artifact(update["artifact"], 0)}

    def config(self, config: PushConfig) -> Tree:
        """Return a PushNotificationConfig."""
        tree: dict[str, Any] = {"id": config.id, "url": config.url}
        if config.schemes:
            tree["authentication"] = {"schemes": list(config.schemes)}
        return tree

    def push_config(self, config: PushConfig) -> Tree:
        return {"taskId": config.task_id, "pushNotificationConfig": self.config(config)}
