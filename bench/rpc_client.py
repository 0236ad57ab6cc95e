"""A gRPC client under measurement: `python -m bench.rpc_client HOST:PORT TASK CONNECTIONS SECONDS` prints calls a second.

Its stubs are the official ones; run several of it, for in Python the client costs as much as the server.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid

import grpc
import uvloop
from a2a.types import a2a_pb2, a2a_pb2_grpc

__all__ = ["chunks"]

VERSION = (("a2a-version", "1.0"),)


def _stub(channel: grpc.aio.Channel) -> a2a_pb2_grpc.A2AServiceStub:
    return a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]


async def chunks(address: str, count: int) -> float:
    """Seconds of one stream of so many chunks; RuntimeError when one is missing or out of order."""
    message = a2a_pb2.Message(message_id=uuid.uuid4().hex, role=a2a_pb2.ROLE_USER)
    message.parts.add(text=f"chunks {count}")
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        begun, seen = time.perf_counter(), []
        request = a2a_pb2.SendMessageRequest(message=message)
        async for item in _stub(channel).SendStreamingMessage(request, metadata=VERSION):
            if item.HasField("artifact_update"):
                text = item.artifact_update.artifact.parts[0].text
                seen.append(int(text[1:].partition(";")[0]))
        seconds = time.perf_counter() - begun
    if seen != list(range(count)):
        raise RuntimeError(f"{len(seen)} of {count} chunks")
    return seconds


async def get(address: str, task: str, connections: int, seconds: float) -> float:
    """GetTask calls a second, with so many under way at once."""
    request, calls = a2a_pb2.GetTaskRequest(id=task), 0
    async with grpc.aio.insecure_channel(address) as channel:
        stub, until = _stub(channel), time.perf_counter() + seconds

        async def one() -> None:
            nonlocal calls
            while time.perf_counter() < until:
                answer = await stub.GetTask(request, metadata=VERSION)
                if answer.id != task:
                    raise RuntimeError("another task")
                calls += 1

        await asyncio.gather(*(one() for _ in range(connections)))
    return calls / seconds


if __name__ == "__main__":
    where, wanted, width, length = sys.argv[1:]
    print(uvloop.run(get(where, wanted, int(width), float(length))))
