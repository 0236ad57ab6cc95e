"""The standard services: grpclib's health and reflection on calls with limits (`call.py`).

Their specifications: grpc/grpc, doc/health-checking.md and doc/server-reflection.md.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError, Message
from grpclib.const import Handler as GrpcHandler
from grpclib.const import Status
from grpclib.health.check import ServiceStatus
from grpclib.health.service import Health
from grpclib.health.v1 import health_pb2
from grpclib.reflection.service import ServerReflection
from grpclib.reflection.v1 import reflection_pb2
from grpclib.reflection.v1alpha import reflection_pb2 as old_reflection_pb2

from a2a_grpc.binding.call import CallEnded, GrpcCall, Handler
from a2a_grpc.binding.schema import know, pool
from a2a_grpc.binding.service import SERVICES

__all__ = ["standard_handlers"]

FILES = (health_pb2, reflection_pb2, old_reflection_pb2)
REFLECTION = tuple(f"grpc.reflection.{version}.ServerReflection" for version in ("v1", "v1alpha"))


class _ServiceName:
    """A service of which grpclib needs only the name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __mapping__(self) -> dict[str, Any]:
        return {f"/{self._name}/": None}


class _Messages:
    """The messages of a call, in the form of `grpclib.server.Stream`."""

    def __init__(self, call: GrpcCall, kind: type[Message]) -> None:
        self._call, self._kind = call, kind

    async def recv_message(self) -> Message:
        """Return the client's message; an empty one if there is none. Raises CallEnded."""
        return self._parse(await self._call.read() or b"")

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (data := await self._call.read()) is not None:
            yield self._parse(data)

    async def send_message(self, message: Message) -> None:
        await self._call.write(message.SerializeToString())

    async def send_trailing_metadata(self, *, status: Status) -> None:
        self._call.end(status, "There is no such service")

    def _parse(self, data: bytes) -> Message:
        try:
            return self._kind.FromString(data)
        except DecodeError:
            self._call.end(Status.INVALID_ARGUMENT, "The message cannot be read")
            raise CallEnded from None


def standard_handlers(serving: ServiceStatus) -> Mapping[bytes, Handler]:
    """Return the handlers of health, with this status for all services of the protocol, and of reflection."""
    know([file.DESCRIPTOR for file in FILES], pool())
    named = [_ServiceName(name) for name in (*SERVICES, *REFLECTION)]
    health = Health({each: [serving] for each in named[: len(SERVICES)]})
    reflections = ServerReflection.extend([*named, health], pool=pool())[-2:]
    return {
        path.encode(): functools.partial(_answer, handler)
        for service in (health, *reflections)
        for path, handler in service.__mapping__().items()
    }


async def _answer(handler: GrpcHandler, call: GrpcCall) -> None:
    await handler.func(_Messages(call, handler.request_type))
