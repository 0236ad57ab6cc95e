"""The operations as clients of both gRPC packages ask for them: rpc, message, metadata; written from the protos alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToJson, ParseDict

from a2a_grpc.binding.schema import message_class, service
from tests.support.dialects.clients import Grammar, Proto, Wrapped

__all__ = ["RPC_WIRES", "RpcWire", "as_json", "described", "message_of"]


@dataclass(frozen=True)
class RpcWire:
    """A client of one dialect of one package."""

    name: str
    package: str
    grammar: Grammar
    #: Its word for an operation.
    rpcs: Mapping[str, str]
    #: The A2A-Version its clients send.
    version: str = ""


_COMMON = {
    "send": "SendMessage",
    "stream": "SendStreamingMessage",
    "get": "GetTask",
    "cancel": "CancelTask",
    "read": "GetTaskPushNotificationConfig",
    "delete": "DeleteTaskPushNotificationConfig",
}
_V10 = {
    **_COMMON,
    "list": "ListTasks",
    "subscribe": "SubscribeToTask",
    "create": "CreateTaskPushNotificationConfig",
    "configs": "ListTaskPushNotificationConfigs",
    "extended": "GetExtendedAgentCard",
}
_V03 = {
    **_COMMON,
    "subscribe": "TaskSubscription",
    "create": "CreateTaskPushNotificationConfig",
    "configs": "ListTaskPushNotificationConfig",
    "called card": "GetAgentCard",
}
_V02 = {
    **_V03,
    "create": "CreateTaskPushNotification",
    "read": "GetTaskPushNotification",
    "configs": "ListTaskPushNotification",
}
_DRAFT = {
    **_V10,
    "create": "SetTaskPushNotificationConfig",
    "configs": "ListTaskPushNotificationConfig",
}
RPC_WIRES = [
    RpcWire("v02-grpc", "a2a.v1", Proto(), _V02, "0.2"),
    RpcWire("v03-grpc", "a2a.v1", Proto(), _V03),
    RpcWire("dr-grpc", "a2a.v1", Proto(), _DRAFT, "1.0"),
    RpcWire("v10-grpc", "lf.a2a.v1", Wrapped(), _V10, "1.0"),
]


@functools.cache
def described(path: str) -> MethodDescriptor:
    """The rpc of a path (`/lf.a2a.v1.A2AService/GetTask`). Raises KeyError."""
    full, _, name = path.strip("/").partition("/")
    return service(full.rpartition(".")[0]).methods_by_name[name]


def message_of(path: str, tree: Mapping[str, Any]) -> bytes:
    """The request message of an rpc, from its ProtoJSON; members that its proto lacks are left out."""
    made = message_class(described(path).input_type.full_name)()
    return ParseDict(dict(tree), made, ignore_unknown_fields=True).SerializeToString()


def as_json(path: str, message: bytes) -> bytes:
    """An answer of an rpc as ProtoJSON, in which ids and moments can be found."""
    read = message_class(described(path).output_type.full_name).FromString(message)
    return MessageToJson(read, indent=None).encode()
