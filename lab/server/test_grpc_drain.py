"""What a drain of gRPC waits for, and whom it does not: `manage.py serve_grpc` as a process, asked to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from h2 import events
from h2.settings import SettingCodes

from lab.server.test_serve_grpc import served
from tests.support.grpc_server.client import Client, connected
from tests.support.printing_process import PATIENCE
from tests.support.processes import Child

pytestmark = pytest.mark.django_db(transaction=True)
#: A drain that outlasts the patience of a test: whoever holds it fails.
LONG = str(2 * PATIENCE)
UNAVAILABLE = ("14", "This process stops")
WATCH = {":path": "/grpc.health.v1.Health/Watch"}
REFLECT = {":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}
CHECK = {":path": "/grpc.health.v1.Health/Check"}


@pytest.fixture
def process() -> Iterator[tuple[Child, int]]:
    """A process with a long drain, and its port."""
    with served(A2A_DRAIN_SECONDS=LONG) as (begun, address):
        yield begun, int(address.rpartition(":")[2])


async def ended(process: Child) -> int:
    """Its exit code."""
    return await asyncio.to_thread(process.process.wait, PATIENCE)


def told(client: Client, stream: int) -> list[int]:
    """What a health check was told."""
    return [HealthCheckResponse.FromString(each).status for each in client.answers(stream)]


async def test_whoever_only_looks_is_told_and_holds_nothing(process: tuple[Child, int]) -> None:
    child, port = process
    async with connected(port) as client:
        watching = client.call(HealthCheckRequest().SerializeToString(), headers=WATCH)
        half = client.call(HealthCheckRequest().SerializeToString(), headers=WATCH, end=False)
        idle = client.call(headers=REFLECT, end=False)
        silent = client.call(headers=CHECK, end=False)
        for stream in (watching, half):
            await client.until(events.DataReceived, stream)
        child.process.send_signal(signal.SIGTERM)
        for stream in (watching, half, idle, silent):
            assert await client.status(stream) == UNAVAILABLE
        for stream in (watching, half):
            assert told(client, stream) == [
                HealthCheckResponse.SERVING,
                HealthCheckResponse.NOT_SERVING,
            ]
        await client.closed()
    assert await ended(child) == 0


async def test_a_watch_that_takes_nothing_holds_nothing(process: tuple[Child, int]) -> None:
    child, port = process
    async with connected(port) as client:
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        watching = client.call(HealthCheckRequest().SerializeToString(), headers=WATCH)
        await client.until(events.ResponseReceived, watching)
        child.process.send_signal(signal.SIGTERM)
        await client.closed()
    assert await ended(child) == 0


async def test_a_client_that_does_not_answer_the_goodbye_holds_nothing(
    process: tuple[Child, int],
) -> None:
    child, port = process
    async with connected(port) as client:
        checked = client.call(HealthCheckRequest().SerializeToString(), headers=CHECK)
        assert (await client.status(checked))[0] == "0"
        child.process.send_signal(signal.SIGTERM)
        assert await ended(child) == 0
