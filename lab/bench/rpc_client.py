"""Our host as the official stubs see it over gRPC."""

from __future__ import annotations

import time
import uuid

import grpc
from a2a.types import a2a_pb2, a2a_pb2_grpc

__all__ = ["make_request", "chunks", "got"]

VERSION = (("a2a-version", "1.0"),)


def _stub(channel: grpc.aio.Channel) -> a2a_pb2_grpc.A2AServiceStub:
    return a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]


def make_request(count: int) -> a2a_pb2.SendMessageRequest:
    """Return the request for a number of chunks."""
    message = a2a_pb2.Message(message_id=uuid.uuid4().hex, role=a2a_pb2.ROLE_USER)
    message.parts.add(text=f"chunks {count}")
    return a2a_pb2.SendMessageRequest(message=message)


async def chunks(address: str, count: int) -> float:
    """Seconds of one stream of so many chunks; RuntimeError when one is missing or out of order."""
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        begun, seen = time.perf_counter(), []
        async for item in _stub(channel).SendStreamingMessage(
            make_request(count), metadata=VERSION
        ):
            if item.HasField("artifact_update"):
                text = item.artifact_update.artifact.parts[0].text
                seen.append(int(text[1:].partition(";")[0]))
        seconds = time.perf_counter() - begun
    if seen != list(range(count)):
        raise RuntimeError(f"{len(seen)} of {count} chunks")
    return seconds


async def got(address: str, task: str) -> tuple[bytes, bytes]:
    """GetTask as it goes over the wire: request and answer."""
    request = a2a_pb2.GetTaskRequest(id=task)
    async with grpc.aio.insecure_channel(address) as channel:
        answer = await _stub(channel).GetTask(request, metadata=VERSION)
    if answer.id != task:
        raise RuntimeError("another task")
    return request.SerializeToString(), answer.SerializeToString()
