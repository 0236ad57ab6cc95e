"""gRPC in the process that serves HTTP: it answers, streams, and ends with it, and not after it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from h2 import events

from lab.server.test_grpc_drain import UNAVAILABLE, WATCH, ended, told
from tests.journeys.hosts import Web, embedded
from tests.journeys.waiting import eventually
from tests.support.grpc_server.client import connected
from tests.support.ports import free_port
from tests.support.printing_process import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)
SERVICE, MOUNT = "/lf.a2a.v1.A2AService", "/agents/demo/a2a/1.0"


@pytest.fixture
def host() -> Iterator[tuple[Web, int]]:
    """One process that serves both, and the port of gRPC."""
    port = free_port()
    environ = {"A2A_GRPC_PORT": str(port), "A2A_RUNS": "local", "A2A_DRAIN_SECONDS": "6"}
    with embedded(environ) as web:
        yield web, port


def said(text: str) -> bytes:
    """A request with a message."""
    message = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[{"text": text}])
    return a2a_pb2.SendMessageRequest(message=message).SerializeToString()


async def test_it_answers_and_streams_and_tells_its_streams_of_the_end(
    host: tuple[Web, int],
) -> None:
    web, port = host
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        send: Any = channel.unary_unary(f"{SERVICE}/SendMessage")
        answer = a2a_pb2.SendMessageResponse.FromString(
            await send(said("echo hello"), timeout=PATIENCE)
        )
        assert answer.task.status.state == a2a_pb2.TASK_STATE_COMPLETED
        stream: Any = channel.unary_stream(f"{SERVICE}/SendStreamingMessage")
        call = stream(said("sleep 60"), timeout=PATIENCE)
        assert a2a_pb2.StreamResponse.FromString(await call.read()).HasField("task")
        web.process.process.send_signal(signal.SIGTERM)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            while await call.read():
                pass
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await ended(web.process) == 0


async def test_it_says_that_it_ends_while_http_still_answers(host: tuple[Web, int]) -> None:
    web, port = host
    body = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "sleep 60"}]}}
    async with (
        httpx.AsyncClient(base_url=web.url, timeout=PATIENCE, trust_env=False) as http,
        connected(port) as client,
    ):
        waits = asyncio.create_task(http.post(f"{MOUNT}/message:send", json=body))

        async def begun() -> bool:
            return bool((await http.get(f"{MOUNT}/tasks", params={"pageSize": 1})).json()["tasks"])

        await eventually(begun, "the request over HTTP is under way")
        watching = client.call(HealthCheckRequest().SerializeToString(), headers=WATCH)
        await client.until(events.DataReceived, watching)
        web.process.process.send_signal(signal.SIGTERM)
        assert await client.status(watching) == UNAVAILABLE
        assert told(client, watching)[-1] == HealthCheckResponse.NOT_SERVING
        assert not waits.done()
        await asyncio.wait({waits})
    assert await ended(web.process) == 0
