"""A2A 1.0 final (1.0.0 and 1.0.1): ProtoJSON names and enums, wrapped results, bare stored text spliced in.

Requests are read leniently where the specification says so (unknown members ignored, null is absent, snake_case
accepted, enum numbers accepted) and strictly where it says MUST. Aliases of the release candidate (`blocking`,
`pushNotificationConfig`) are read too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from a2a_tasks.protocol.dialects.dialect import Dialect
from a2a_tasks.protocol.errors import A2AError, InvalidParams, MethodNotFound
from a2a_tasks.protocol.fields import Fields, canonical_base64
from a2a_tasks.protocol.lifecycle import EventKind, Recorded
from a2a_tasks.protocol.requests import (
    DEFAULT_PAGE,
    MAX_PAGE,
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetExtendedAgentCardRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListPushConfigsRequest,
    ListTasksRequest,
    Request,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.values import (
    UNSET,
    Message,
    Part,
    PushConfig,
    Raw,
    Role,
    Task,
    TaskPage,
    TaskState,
    UnsetType,
)

LONGEST_ID = 256
MOST_PARTS = 1000

#: Enum members by name and by number; both are read (ProtoJSON), only names are written.
_ROLES: dict[object, Role] = {
    "ROLE_USER": Role.USER,
    1: Role.USER,
    "ROLE_AGENT": Role.AGENT,
    2: Role.AGENT,
}
_STATES: dict[object, TaskState | None] = {
    key: state
    for number, state in enumerate(
        [
            TaskState.SUBMITTED,
            TaskState.WORKING,
            TaskState.COMPLETED,
            TaskState.FAILED,
            TaskState.CANCELED,
            TaskState.INPUT_REQUIRED,
            TaskState.REJECTED,
            TaskState.AUTH_REQUIRED,
        ],
        1,
    )
    for key in (state.value, number)
}
_STATES |= {"TASK_STATE_UNSPECIFIED": None, 0: None, "TASK_STATE_CANCELLED": TaskState.CANCELED}
_CONTENTS = ("text", "raw", "url", "data")
_STREAM_KEYS = {EventKind.STATUS: b'{"statusUpdate":', EventKind.ARTIFACT: b'{"artifactUpdate":'}
_encode = msgspec.json.Encoder().encode


def _enum_key(value: object) -> object:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _content(fields: Fields) -> dict[str, Any]:
    """The one content member of a part (§4.1.6: exactly one)."""
    found = [name for name in _CONTENTS if fields.members.get(name) is not None]
    if not found and "data" in fields.members:
        found = ["data"]  # null is a value here, not absence
    if len(found) != 1:
        fields.violations.append((fields.path, "must have exactly one of text, raw, url, data"))
        return {}
    name = found[0]
    if name == "data":
        return {"data": fields.members["data"]}
    text = fields.value(name)
    if not isinstance(text, str):
        fields.bad(name, "must be a string")
        return {}
    if name == "raw":
        try:
            text = canonical_base64(text)
        except ValueError:
            fields.bad(name, "must be base64")
    return {name: text}


def _part(fields: Fields) -> Part:
    return Part(
        **_content(fields),
        metadata=fields.struct("metadata"),
        filename=fields.string("filename"),
        media_type=fields.string("media_type"),
    )


def _parts(fields: Fields) -> tuple[Part, ...]:
    items = fields.value("parts")
    if not items:
        fields.bad("parts", "must have at least one part")
        return ()
    if isinstance(items, list) and len(items) > MOST_PARTS:
        fields.bad("parts", f"must have at most {MOST_PARTS} parts")
        return ()
    return tuple(_part(item) for item in fields.objects("parts"))


def _identifier(fields: Fields, name: str, *, required: bool = False) -> str | None:
    found = fields.string(name, required=required, longest=LONGEST_ID)
    if found is not None and "\x00" in found:
        fields.bad(name, "must not hold NUL")
    return found


def _message(fields: Fields) -> Message:
    """A Message of a client (§4.1.4)."""
    role = _ROLES.get(_enum_key(fields.value("role")))
    if role is None:
        fields.bad("role", "must be ROLE_USER or ROLE_AGENT")
    return Message(
        message_id=_identifier(fields, "message_id", required=True) or "",
        context_id=_identifier(fields, "context_id"),
        task_id=fields.string("task_id"),
        role=role or Role.USER,
        parts=_parts(fields),
        metadata=fields.struct("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("reference_task_ids"),
    )


def _tenant(fields: Fields) -> str:
    return _identifier(fields, "tenant") or ""


def _return_immediately(configuration: Fields) -> bool:
    found = configuration.boolean("return_immediately")
    if found is None and configuration.has("blocking"):  # the release candidate's spelling
        return configuration.boolean("blocking") is False
    return bool(found)


def _send(fields: Fields) -> SendMessageRequest:
    message = fields.object("message", required=True)
    configuration = fields.object("configuration") or Fields({}, "", fields.violations)
    push = configuration.object("task_push_notification_config")
    push = push or configuration.object("push_notification_config")
    return SendMessageRequest(
        message=_message(message) if message else _NO_MESSAGE,
        tenant=_tenant(fields),
        accepted_output_modes=configuration.strings("accepted_output_modes"),
        history_length=configuration.length("history_length"),
        return_immediately=_return_immediately(configuration),
        push_config=_push_config(push, id_=_identifier(push, "id") or "") if push else None,
        metadata=fields.struct("metadata"),
    )


def _id(fields: Fields, name: str = "id") -> str:
    return fields.string(name, required=True) or ""


def _get(fields: Fields) -> GetTaskRequest:
    return GetTaskRequest(
        id=_id(fields), tenant=_tenant(fields), history_length=fields.length("history_length")
    )


def _page_size(fields: Fields) -> int:
    found = fields.integer("page_size")
    if found is not None and not 1 <= found <= MAX_PAGE:
        fields.bad("page_size", f"must be from 1 to {MAX_PAGE}")
    return DEFAULT_PAGE if found is None else found


def _list(fields: Fields) -> ListTasksRequest:
    key = _enum_key(fields.value("status"))
    if fields.value("status") is not None and key not in _STATES:
        fields.bad("status", "must be the name of a task state")
    return ListTasksRequest(
        tenant=_tenant(fields),
        context_id=fields.string("context_id"),
        status=_STATES.get(key),
        page_size=_page_size(fields),
        page_token=fields.string("page_token") or "",
        history_length=fields.length("history_length") or 0,
        status_timestamp_after=fields.timestamp("status_timestamp_after"),
        include_artifacts=bool(fields.boolean("include_artifacts")),
    )


def _cancel(fields: Fields) -> CancelTaskRequest:
    return CancelTaskRequest(
        id=_id(fields), tenant=_tenant(fields), metadata=fields.struct("metadata")
    )


def _subscribe(fields: Fields) -> SubscribeToTaskRequest:
    return SubscribeToTaskRequest(id=_id(fields), tenant=_tenant(fields))


def _push_config(fields: Fields, task_id: str = "", id_: str = "") -> PushConfig:
    """The flat TaskPushNotificationConfig (§4.3.1)."""
    authentication = fields.object("authentication")
    scheme = authentication.string("scheme") if authentication else None
    return PushConfig(
        url=fields.string("url", required=True) or "",
        id=id_,
        task_id=task_id,
        token=fields.string("token") or "",
        schemes=(scheme,) if scheme else (),
        credentials=(authentication.string("credentials") if authentication else "") or "",
        dialect="v10",
    )


def _create_push(fields: Fields) -> CreatePushConfigRequest:
    config = _push_config(fields, _id(fields, "task_id"), _identifier(fields, "id") or "")
    return CreatePushConfigRequest(config=config, tenant=_tenant(fields))


def _get_push(fields: Fields) -> GetPushConfigRequest:
    return GetPushConfigRequest(
        task_id=_id(fields, "task_id"), id=_id(fields), tenant=_tenant(fields)
    )


def _list_push(fields: Fields) -> ListPushConfigsRequest:
    return ListPushConfigsRequest(
        task_id=_id(fields, "task_id"),
        tenant=_tenant(fields),
        page_size=_page_size(fields),
        page_token=fields.string("page_token") or "",
    )


def _delete_push(fields: Fields) -> DeletePushConfigRequest:
    return DeletePushConfigRequest(
        task_id=_id(fields, "task_id"), id=_id(fields), tenant=_tenant(fields)
    )


def _card(fields: Fields) -> GetExtendedAgentCardRequest:
    return GetExtendedAgentCardRequest(tenant=_tenant(fields))


_NO_MESSAGE = Message(message_id="", role=Role.USER, parts=())
_DECODERS: dict[str, Callable[[Fields], Request]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _send,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
    "CreateTaskPushNotificationConfig": _create_push,
    "GetTaskPushNotificationConfig": _get_push,
    "ListTaskPushNotificationConfigs": _list_push,
    "DeleteTaskPushNotificationConfig": _delete_push,
    "GetExtendedAgentCard": _card,
}


class _Response(msgspec.Struct, omit_defaults=True):
    """SendMessageResponse and StreamResponse: exactly one member."""

    task: Task | UnsetType = UNSET
    message: Raw | UnsetType = UNSET


@functools.lru_cache(maxsize=4096)
def _opening(kind: EventKind, task_id: str, context_id: str) -> bytes:
    """The start of every stream item of one kind of one task."""
    ids = _encode({"taskId": task_id, "contextId": context_id})
    return _STREAM_KEYS[kind] + ids[:-1] + b","


class _V10:
    """The dialect; see `Dialect` for what each method does."""

    code, version = "v10", "1.0"

    def decode(self, operation: str, params: Mapping[str, Any]) -> Request:
        if operation not in _DECODERS:
            raise MethodNotFound
        if not isinstance(params, Mapping):
            raise InvalidParams.field("params", "must be an object")
        fields = Fields(params)
        request = _DECODERS[operation](fields)
        fields.check()
        return request

    def answer(self, operation: str, result: Task | Raw | TaskPage | Mapping[str, Any]) -> bytes:
        if operation == "SendMessage" and isinstance(result, Task | Raw):
            return self.first(result)
        return _encode(result)

    def first(self, item: Task | Raw) -> bytes:
        if isinstance(item, Task):
            return _encode(_Response(task=item))
        return _encode(_Response(message=item))

    def event(self, task_id: str, context_id: str, event: Recorded) -> bytes:
        return _opening(event.kind, task_id, context_id) + event.body[1:].encode() + b"}"

    def error_details(self, error: A2AError) -> list[dict[str, object]]:
        return error.details


DIALECT: Dialect = _V10()
