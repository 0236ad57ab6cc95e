"""The rpcs of both services, made from their descriptors: the request, the operation and the answer of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message

from a2a_grpc.binding.codecs import encoder, parser, reader
from a2a_grpc.binding.schema import FINAL, SUPERSET, service
from a2a_tasks.protocol.catalogue import BY_NAME

__all__ = ["RPCS", "Rpc"]

#: Rpcs of `a2a.v1` whose operation has another name in 1.0.
OPERATIONS = {
    "TaskSubscription": "SubscribeToTask",
    "SetTaskPushNotificationConfig": "CreateTaskPushNotificationConfig",
    "ListTaskPushNotificationConfig": "ListTaskPushNotificationConfigs",
    "CreateTaskPushNotification": "CreateTaskPushNotificationConfig",
    "GetTaskPushNotification": "GetTaskPushNotificationConfig",
    "ListTaskPushNotification": "ListTaskPushNotificationConfigs",
}
#: Rpcs of `a2a.v1` that exist only in 0.2 and 0.3, or only in the draft. The others are decided by `a2a-version`.
DIALECTS = {
    "TaskSubscription": "v03",
    "GetAgentCard": "v03",
    "CreateTaskPushNotificationConfig": "v03",
    "CreateTaskPushNotification": "v03",
    "GetTaskPushNotification": "v03",
    "ListTaskPushNotification": "v03",
    "SubscribeToTask": "dr",
    "SetTaskPushNotificationConfig": "dr",
    "ListTasks": "dr",
    "GetExtendedAgentCard": "dr",
}
#: The A2A-Versions that each package admits besides an absent one.
ADMITTED = {FINAL: ("1.0",), SUPERSET: ("1.0", "0.3", "0.2")}


@dataclass(frozen=True, slots=True)
class Rpc:
    """One rpc of one of the services."""

    package: str
    name: str
    operation: str
    #: Parses the message of a request; None = unreadable.
    parse: Callable[[bytes], Message | None]
    #: Reads its tree. Raises InvalidParams.
    read: Callable[[Message], dict[str, Any]]
    #: Writes the bytes of an answer, from its JSON.
    write: Callable[[bytes], bytes]

    @property
    def streams(self) -> bool:
        """True if the rpc answers with a stream."""
        return BY_NAME[self.operation].streams

    @property
    def admitted(self) -> tuple[str, ...]:
        """The A2A-Versions that a client may ask for."""
        return ADMITTED[self.package]

    def dialect(self, version: str) -> str:
        """Return the code of the dialect for a request of that version, which may be empty."""
        if self.package == FINAL:
            return "v10"
        return DIALECTS.get(self.name) or ("dr" if version == "1.0" else "v03")


def _rpc(package: str, method: MethodDescriptor) -> Rpc:
    return Rpc(
        package=package,
        name=method.name,
        operation=OPERATIONS.get(method.name, method.name),
        parse=parser(method.input_type.full_name),
        read=reader(method.input_type.full_name),
        write=encoder(method.output_type.full_name),
    )


@functools.cache
def _of(package: str) -> Mapping[str, Rpc]:
    return {method.name: _rpc(package, method) for method in service(package).methods}


#: By full name of the service: its rpcs by their names.
RPCS: Mapping[str, Mapping[str, Rpc]] = {
    service(package).full_name: _of(package) for package in (FINAL, SUPERSET)
}
