"""The two proto packages, in a pool of their own: `lf.a2a.v1` as published, `a2a.v1` as a superset of all releases.

The descriptors come from the official SDK. Those of 0.3 lack fields of the draft of 1.0 and of the first releases of
0.2; they are added here without changing any existing number (docs/decisions/0011).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

__all__ = ["FINAL", "SUPERSET", "know", "message_class", "pool", "service"]

FINAL, SUPERSET = "lf.a2a.v1", "a2a.v1"
SERVICE = "A2AService"

_SCALARS = {"string", "bool", "int32", "int64"}
_ENUMS = {"TaskState"}
_SET = ("string parent = 1", "string config_id = 2", "TaskPushNotificationConfig config = 3")
#: Fields that the published proto of 0.3 lacks, by message, in proto3 syntax.
ADDED: Mapping[str, tuple[str, ...]] = {
    "Message": ("repeated string reference_task_ids = 8",),
    "AgentCapabilities": ("bool state_transition_history = 4",),
    "AgentCard": ("repeated AgentInterface supported_interfaces = 19",),
    "SubscribeToTaskRequest": ("string name = 1",),
    "SetTaskPushNotificationConfigRequest": _SET,
    "GetExtendedAgentCardRequest": (),
    "ListTasksRequest": (
        "string context_id = 1",
        "TaskState status = 2",
        "optional int32 page_size = 3",
        "string page_token = 4",
        "optional int32 history_length = 5",
        "int64 last_updated_after = 6",
        "optional bool include_artifacts = 7",
        ".google.protobuf.Struct metadata = 8",
    ),
    "ListTasksResponse": (
        "repeated Task tasks = 1",
        "string next_page_token = 2",
        "int32 page_size = 3",
        "int32 total_size = 4",
    ),
}
#: Fields that the draft made optional: an explicit 0 differs from an absent field. Peers of 0.3 never write a 0.
OPTIONAL = {"SendMessageConfiguration": "history_length", "GetTaskRequest": "history_length"}
#: The rpcs of the draft, and those of 0.2.2 to 0.2.4: name, request, response.
ADDED_RPCS = (
    "SubscribeToTask SubscribeToTaskRequest stream StreamResponse",
    "SetTaskPushNotificationConfig SetTaskPushNotificationConfigRequest TaskPushNotificationConfig",
    "ListTasks ListTasksRequest ListTasksResponse",
    "GetExtendedAgentCard GetExtendedAgentCardRequest AgentCard",
    "CreateTaskPushNotification CreateTaskPushNotificationConfigRequest TaskPushNotificationConfig",
    "GetTaskPushNotification GetTaskPushNotificationConfigRequest TaskPushNotificationConfig",
    "ListTaskPushNotification ListTaskPushNotificationConfigRequest ListTaskPushNotificationConfigResponse",
)


def _make_optional(message: DescriptorProto, field: FieldDescriptorProto) -> None:
    field.proto3_optional = True
    field.oneof_index = len(message.oneof_decl)
    message.oneof_decl.add(name=f"_{field.name}")


def _add_field(message: DescriptorProto, text: str) -> None:
    """Add the field that a line of proto3 declares."""
    *label, kind, name, _, number = text.split()
    repeated = FieldDescriptorProto.LABEL_REPEATED
    field = message.field.add(
        name=name,
        number=int(number),
        label=repeated if label == ["repeated"] else FieldDescriptorProto.LABEL_OPTIONAL,
    )
    if kind in _SCALARS:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    else:
        named = FieldDescriptorProto.TYPE_ENUM, FieldDescriptorProto.TYPE_MESSAGE
        field.type = named[kind not in _ENUMS]
        field.type_name = kind if kind.startswith(".") else f".{SUPERSET}.{kind}"
    if label == ["optional"]:
        _make_optional(message, field)


def _superset(published: FileDescriptor) -> FileDescriptorProto:
    """Return the proto of 0.3 with the additions."""
    file = FileDescriptorProto()
    published.CopyToProto(file)
    messages = {message.name: message for message in file.message_type}
    for name, fields in ADDED.items():
        message = messages.get(name) or file.message_type.add(name=name)
        for text in fields:
            _add_field(message, text)
    for name, optional in OPTIONAL.items():
        (field,) = [field for field in messages[name].field if field.name == optional]
        _make_optional(messages[name], field)
    (service,) = file.service
    for rpc in ADDED_RPCS:
        name, request, *stream, response = rpc.split()
        service.method.add(
            name=name,
            input_type=f".{SUPERSET}.{request}",
            output_type=f".{SUPERSET}.{response}",
            server_streaming=bool(stream),
        )
    return file


def know(files: Iterable[Any], into: DescriptorPool) -> None:
    """Add files to the pool, each after its dependencies."""
    for file in files:
        know(file.dependencies, into)
        into.AddSerializedFile(file.serialized_pb)


@functools.cache
def pool() -> DescriptorPool:
    """Return the pool with both packages: the SDK's own classes, in the default pool, are not touched."""
    made = DescriptorPool()
    know([a2a_pb2.DESCRIPTOR], made)
    know(a2a_v0_3_pb2.DESCRIPTOR.dependencies, made)
    made.Add(_superset(a2a_v0_3_pb2.DESCRIPTOR))
    return made


def message_class(name: str) -> type[Message]:
    """Return the class of the message of that full name. Raises KeyError."""
    return GetMessageClass(pool().FindMessageTypeByName(name))


def service(package: str) -> ServiceDescriptor:
    """Return the service of a package."""
    return pool().FindServiceByName(f"{package}.{SERVICE}")
