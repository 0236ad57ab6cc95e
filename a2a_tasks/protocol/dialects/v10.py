"""A2A 1.0 final (1.0.0 and 1.0.1): ProtoJSON names and enums, wrapped results, bare stored text spliced in.

Requests are read leniently where the specification says so (unknown members ignored, null is absent, snake_case
accepted, enum numbers accepted) and strictly where it says MUST. Aliases of the release candidate (`blocking`,
`pushNotificationConfig`) are accepted, too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from a2a_tasks.protocol import errors
from a2a_tasks.protocol.catalogue import OPERATIONS
from a2a_tasks.protocol.dialects import cards
from a2a_tasks.protocol.dialects.dialect import (
    Dialect,
    DialectFeatures,
    DialectRefusal,
    Result,
    Subject,
    by_kind,
)
from a2a_tasks.protocol.dialects.reading import (
    ENUM_STATES,
    ROLES,
    base64_text,
    enum_key,
    identifier,
    identity,
    page_size,
    parts,
    tenant,
)
from a2a_tasks.protocol.dialects.signed_members import FINAL, CardSignature
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.lifecycle import EventKind, LogEvent
from a2a_tasks.protocol.requests import (
    CancelTaskRequest,
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetExtendedAgentCardRequest,
    GetPushConfigRequest,
    GetTaskRequest,
    ListPushConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from a2a_tasks.protocol.rest import Route, status_body
from a2a_tasks.protocol.values import (
    UNSET,
    Message,
    Part,
    PushConfig,
    PushConfigPage,
    Raw,
    Role,
    Task,
    TaskPage,
    UnsetType,
    replace,
)

__all__ = ["CODES_1_0_0", "V10"]

_CONTENTS = ("text", "raw", "url", "data")
_STREAM_KEYS = {
    EventKind.STATUS: b'{"statusUpdate":',
    EventKind.TOOL: b'{"statusUpdate":',
    EventKind.ARTIFACT: b'{"artifactUpdate":',
}
_encode = msgspec.json.Encoder().encode

#: HTTP status and gRPC name where 1.0.0 (and the draft) differ from 1.0.1 (A2A 1.0.0 §5.4).
CODES_1_0_0: Mapping[type[A2AError], tuple[int, str]] = {
    errors.TaskNotCancelable: (409, "FAILED_PRECONDITION"),
    errors.PushNotificationNotSupported: (400, "UNIMPLEMENTED"),
    errors.UnsupportedOperation: (400, "UNIMPLEMENTED"),
    errors.ContentTypeNotSupported: (415, "INVALID_ARGUMENT"),
    errors.InvalidAgentResponse: (502, "INTERNAL"),
    errors.VersionNotSupported: (400, "UNIMPLEMENTED"),
}


def _content(fields: Fields) -> dict[str, Any]:
    """Return the only content member of a part (§4.1.6: exactly one)."""
    found = [name for name in _CONTENTS if fields.members.get(name) is not None]
    if not found and "data" in fields.members:
        found = ["data"]  # null is a value here, not absence
    if len(found) != 1:
        fields.violations.append((fields.path, "must have exactly one of text, raw, url, data"))
        return {}
    name = found[0]
    if name == "data":
        return {"data": fields.members["data"]}
    if name == "raw":
        return {"raw": base64_text(fields, "raw") or ""}
    text = fields.value(name)
    if not isinstance(text, str):
        fields.bad(name, "must be a string")
        return {}
    return {name: text}


def _part(fields: Fields) -> Part:
    return Part(
        **_content(fields),
        metadata=fields.struct("metadata"),
        filename=fields.string("filename"),
        media_type=fields.string("media_type"),
    )


def _message(fields: Fields) -> Message:
    """Read a client's Message (§4.1.4)."""
    role = ROLES.get(enum_key(fields.value("role")))
    if role is None:
        fields.bad("role", "must be ROLE_USER or ROLE_AGENT")
    return Message(
        message_id=identifier(fields, "message_id", required=True) or "",
        context_id=identifier(fields, "context_id"),
        task_id=fields.string("task_id"),
        role=role or Role.USER,
        parts=parts(fields, _part),
        metadata=fields.struct("metadata"),
        extensions=fields.strings("extensions"),
        reference_task_ids=fields.strings("reference_task_ids"),
    )


def _find_push(configuration: Fields) -> Fields | None:
    found = configuration.object("task_push_notification_config")
    return found or configuration.object("push_notification_config")


def _read_configuration(configuration: Fields) -> dict[str, Any]:
    """Read SendMessageConfiguration (§3.2.2), except for the webhook."""
    return {
        "accepted_output_modes": configuration.strings("accepted_output_modes"),
        "history_length": configuration.length("history_length"),
        "return_immediately": _return_immediately(configuration),
    }


def _return_immediately(configuration: Fields) -> bool:
    found = configuration.boolean("return_immediately")
    if found is None and configuration.has("blocking"):  # the release candidate's spelling
        return configuration.boolean("blocking") is False
    return bool(found)


def _push_config(fields: Fields, *, task_id: str = "") -> PushConfig:
    """Read the flat TaskPushNotificationConfig (§4.3.1)."""
    authentication = fields.object("authentication")
    scheme = authentication.string("scheme") if authentication else None
    return PushConfig(
        url=fields.string("url", required=True) or "",
        id=identifier(fields, "id") or "",
        task_id=task_id,
        token=fields.string("token") or "",
        schemes=(scheme,) if scheme else (),
        credentials=(authentication.string("credentials") if authentication else "") or "",
        dialect=V10.code,
        path=fields.path,
    )


def _flat(config: PushConfig) -> dict[str, Any]:
    scheme = {"authentication": {"scheme": config.schemes[0]}} if config.schemes else {}
    tenant_ = {"tenant": config.tenant} if config.tenant else {}
    return {**tenant_, "id": config.id, "taskId": config.task_id, "url": config.url, **scheme}


_NO_MESSAGE = Message(message_id="", role=Role.USER, parts=())


class _Response(msgspec.Struct, omit_defaults=True):
    """SendMessageResponse and StreamResponse: exactly one member."""

    task: Task | UnsetType = UNSET
    message: Raw | UnsetType = UNSET


@functools.lru_cache(maxsize=4096)
def _start_item(kind: EventKind, task_id: str, context_id: str) -> bytes:
    """Return the start of every stream item of one kind of one task."""
    ids = _encode({"taskId": task_id, "contextId": context_id})
    return _STREAM_KEYS[kind] + ids[:-1] + b","


class V10(Dialect):
    """The dialect 1.0; see `Dialect` for the purpose of each method."""

    code, version, title = "v10", "1.0", "1.0"
    features = DialectFeatures(final=False, enforces_extensions=True, error_event=True)
    path, admits = "1.0", frozenset({"1.0"})
    card_members = cards.ABOUT | cards.MODES | {"supportedInterfaces"}
    signature = CardSignature(FINAL, loosely=True)
    pushes_events, one_scheme = True, True
    push_media_type = "application/a2a+json"
    methods = {operation.name: operation.name for operation in OPERATIONS}
    #: SubscribeToTask is POST in the text and GET in the proto; both are served.
    routes = tuple(
        Route(
            ("POST", "GET") if operation.name == "SubscribeToTask" else (operation.verb,),
            operation.path,
            operation.name,
        )
        for operation in OPERATIONS
    )
    has_tenants = True
    a2a_json = True

    def read_send(self, fields: Fields) -> SendMessageRequest:
        message = fields.object("message", required=True)
        configuration = fields.object("configuration")
        push = _find_push(configuration) if configuration else None
        return SendMessageRequest(
            message=_message(message) if message else _NO_MESSAGE,
            tenant=tenant(fields),
            **(_read_configuration(configuration) if configuration else {}),
            pauses=self.features.pauses,
            push_config=_push_config(push) if push else None,
            metadata=fields.struct("metadata"),
        )

    def read_get(self, fields: Fields) -> GetTaskRequest:
        return GetTaskRequest(
            id=identity(fields),
            tenant=tenant(fields),
            history_length=fields.length("history_length"),
        )

    def read_list(self, fields: Fields) -> ListTasksRequest:
        key = enum_key(fields.value("status"))
        if fields.value("status") is not None and key not in ENUM_STATES:
            fields.bad("status", "must be the name of a task state")
        return ListTasksRequest(
            tenant=tenant(fields),
            context_id=fields.string("context_id"),
            status=ENUM_STATES.get(key),
            page_size=page_size(fields),
            page_token=fields.string("page_token") or "",
            history_length=fields.length("history_length") or 0,
            status_timestamp_after=fields.timestamp("status_timestamp_after"),
            include_artifacts=bool(fields.boolean("include_artifacts")),
        )

    def read_cancel(self, fields: Fields) -> CancelTaskRequest:
        return CancelTaskRequest(
            id=identity(fields), tenant=tenant(fields), metadata=fields.struct("metadata")
        )

    def read_subscribe(self, fields: Fields) -> SubscribeToTaskRequest:
        return SubscribeToTaskRequest(id=identity(fields), tenant=tenant(fields))

    def read_create_push(self, fields: Fields) -> CreatePushConfigRequest:
        inner = fields.object("config") or fields.object("push_notification_config")
        config = _push_config(inner or fields, task_id=identity(fields, "task_id"))
        if inner:  # the release candidate's form
            named = identifier(fields, "config_id") or identifier(fields, "id") or config.id
            config = replace(config, id=named)
        return CreatePushConfigRequest(config=config, tenant=tenant(fields))

    def read_get_push(self, fields: Fields) -> GetPushConfigRequest:
        return GetPushConfigRequest(
            task_id=identity(fields, "task_id"), id=identity(fields), tenant=tenant(fields)
        )

    def read_list_push(self, fields: Fields) -> ListPushConfigsRequest:
        return ListPushConfigsRequest(
            task_id=identity(fields, "task_id"),
            tenant=tenant(fields),
            page_size=page_size(fields),
            page_token=fields.string("page_token") or "",
        )

    def read_delete_push(self, fields: Fields) -> DeletePushConfigRequest:
        return DeletePushConfigRequest(
            task_id=identity(fields, "task_id"), id=identity(fields), tenant=tenant(fields)
        )

    def read_extended_card(self, fields: Fields) -> GetExtendedAgentCardRequest:
        return GetExtendedAgentCardRequest(tenant=tenant(fields))

    def answer(self, operation: str, result: Result) -> bytes:
        match result:
            case Task() | Raw() if operation == "SendMessage":
                return self._response(result)
            case TaskPage() if self.switches.list_page_size_returns_count:
                return _encode(replace(result, page_size=len(result.tasks)))
            case PushConfig():
                return _encode(_flat(result))
            case PushConfigPage():
                configs = [_flat(config) for config in result.configs]
                return _encode({"configs": configs, "nextPageToken": result.next_page_token})
        return _encode(result)

    @staticmethod
    def _response(item: Task | Raw) -> bytes:
        if isinstance(item, Task):
            return _encode(_Response(task=item))
        return _encode(_Response(message=item))

    def first(self, subject: Subject, item: Task | Raw, *, ended: bool) -> list[bytes]:
        return [self._response(item)]

    def event(self, subject: Subject, event: LogEvent, *, final: bool) -> bytes:
        opening = _start_item(event.kind, subject.id, subject.context_id)
        return opening + event.body[1:].encode() + b"}"

    def error(self, fault: A2AError) -> Mapping[str, Any]:
        details = fault.details
        data = {"data": details} if details else {}
        return {"code": fault.code, "message": fault.message, **data}

    @property
    def codes(self) -> Mapping[type[A2AError], tuple[int, str]]:
        """HTTP status and gRPC name of errors where they differ from 1.0.1."""
        return CODES_1_0_0 if self.switches.v10_error_table == "1.0.0" else {}

    def refusal(self, fault: A2AError) -> DialectRefusal:
        http, grpc = by_kind(self.codes, fault) or (fault.http_status, fault.grpc_status)
        return DialectRefusal(http, status_body(fault, http, grpc))

    def card(self, card: Mapping[str, Any], url: str) -> Mapping[str, Any]:
        return cards.final(card)
