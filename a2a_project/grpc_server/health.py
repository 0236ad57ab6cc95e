"""The standard health service (grpc/grpc, doc/health-checking.md): the status of services, once or watched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from google.protobuf.message import DecodeError
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from a2a_tasks.bindings.grpc.call import GrpcCall, GrpcStatus, Handler

__all__ = ["NAME", "HealthService"]

NAME = "grpc.health.v1.Health"


class HealthService:
    """Services are serving from `serve` to `stop`; the empty name is the whole server."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._serving = True
        self._changed = asyncio.Event()

    def serve(self, *names: str) -> None:
        """Report these services as serving."""
        self._known.update(names)
        self._tell()

    def stop(self) -> None:
        """Report all services as not serving, and end the watches: the drain does not wait for them."""
        self._serving = False
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def handlers(self) -> Mapping[bytes, Handler]:
        """The handlers by the paths of the rpcs."""
        return {f"/{NAME}/Check".encode(): self._check, f"/{NAME}/Watch".encode(): self._watch}

    def _status(self, name: str) -> HealthCheckResponse.ServingStatus.ValueType:
        if name not in self._known:
            return HealthCheckResponse.SERVICE_UNKNOWN
        states = HealthCheckResponse.NOT_SERVING, HealthCheckResponse.SERVING
        return states[self._serving]

    async def _check(self, call: GrpcCall) -> None:
        name = await _read_service_name(call)
        if name is None:
            return
        status = self._status(name)
        if status == HealthCheckResponse.SERVICE_UNKNOWN:
            call.end(GrpcStatus.NOT_FOUND, "There is no such service")
        else:
            await call.write(_answer(status))

    async def _watch(self, call: GrpcCall) -> None:
        name = await _read_service_name(call)
        if name is None:
            return
        sent = None
        while True:
            changed = self._changed
            if (status := self._status(name)) != sent:
                await call.write(_answer(status))
                sent = status
            if not self._serving:
                call.end(GrpcStatus.UNAVAILABLE, "This process stops")
                return
            await changed.wait()


def _answer(status: HealthCheckResponse.ServingStatus.ValueType) -> bytes:
    answer = HealthCheckResponse(status=status)
    return answer.SerializeToString()


async def _read_service_name(call: GrpcCall) -> str | None:
    """Return the name; None if the message is unreadable, which has ended the call."""
    try:
        return HealthCheckRequest.FromString(await call.read() or b"").service
    except DecodeError:
        call.end(GrpcStatus.INVALID_ARGUMENT, "The message cannot be read")
        return None
