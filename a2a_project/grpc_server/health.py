"""The standard health service (grpc/grpc, doc/health-checking.md): what serves, asked once or watched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from a2a_tasks.bindings.grpc.call import Call, Handler, Status

__all__ = ["NAME", "Health"]

NAME = "grpc.health.v1.Health"


class Health:
    """Services are serving from `serve` to `stop`; the empty name is the whole server."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._serving = True
        self._changed = asyncio.Event()

    def serve(self, *names: str) -> None:
        """Say that they serve."""
        self._known.update(names)
        self._tell()

    def stop(self) -> None:
        """Say that nothing does any more, and to those who watch that they have to ask elsewhere: the drain waits for nobody who only looks."""
        self._serving = False
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def handlers(self) -> Mapping[bytes, Handler]:
        """By the paths of its rpcs."""
        return {f"/{NAME}/Check".encode(): self._check, f"/{NAME}/Watch".encode(): self._watch}

    def _status(self, name: str) -> int:
        if name not in self._known:
            return int(HealthCheckResponse.SERVICE_UNKNOWN)
        states = HealthCheckResponse.NOT_SERVING, HealthCheckResponse.SERVING
        return int(states[self._serving])

    async def _check(self, call: Call) -> None:
        name = await _asked(call)
        if name is None:
            return
        status = self._status(name)
        if status == HealthCheckResponse.SERVICE_UNKNOWN:
            call.end(Status.NOT_FOUND, "There is no such service")
        else:
            await call.write(_answer(status))

    async def _watch(self, call: Call) -> None:
        name = await _asked(call)
        if name is None:
            return
        told = -1
        while True:
            changed = self._changed
            if (status := self._status(name)) != told:
                await call.write(_answer(status))
                told = status
            if not self._serving:
                call.end(Status.UNAVAILABLE, "This process stops")
                return
            await changed.wait()


def _answer(status: int) -> bytes:
    answer = HealthCheckResponse(status=status)
    return answer.SerializeToString()


async def _asked(call: Call) -> str | None:
    """The name that is asked for; None when the call was ended since it cannot be read."""
    try:
        return HealthCheckRequest.FromString(await call.read() or b"").service
    except DecodeError:
        call.end(Status.INVALID_ARGUMENT, "The message cannot be read")
        return None
