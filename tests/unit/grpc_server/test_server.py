"""The server as a whole: whom it lets in, and how it turns the others away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from grpclib.health.v1.health_pb2 import HealthCheckRequest
from pytest_django import Settings

from a2a_grpc.server import Server, make_server
from a2a_project.operations import TABLE
from tests.support.grpc_server.client import PATIENCE, Client, connected, dialled

CHECK = {":path": "/grpc.health.v1.Health/Check"}
LOG = "a2a_grpc.server"


@asynccontextmanager
async def begun(host: str = "127.0.0.1") -> AsyncIterator[tuple[Server, int]]:
    """A server as the settings have it, and its port."""
    server = make_server(TABLE)
    port = await server.listen(host, 0)
    try:
        yield server, port
    finally:
        await server.stop()


async def well(client: Client) -> bool:
    """Is it answered?"""
    stream = client.call(HealthCheckRequest().SerializeToString(), headers=CHECK)
    return (await client.status(stream))[0] == "0"


async def gone(server: Server) -> None:
    """Return when there is no connection."""
    while server.protocols:
        server.lost.clear()
        await server.lost.wait()


async def turned_away(port: int) -> None:
    """One more connection is closed, whatever it would say."""
    async with dialled(port) as (reader, _), asyncio.timeout(PATIENCE):
        await reader.read()


async def test_beyond_the_places_connections_are_closed_and_told_of_once_until_one_is_free(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.A2A_GRPC_CONNECTIONS_PER_ADDRESS = 3
    async with begun() as (server, port), AsyncExitStack() as stack:
        first, *_ = [await stack.enter_async_context(connected(port)) for _ in range(3)]
        assert await well(first)
        with caplog.at_level(logging.WARNING, LOG):
            for _ in range(20):
                await turned_away(port)
        (line,) = [record.getMessage() for record in caplog.records if record.name == LOG]
        assert line == (
            "a gRPC connection was turned away: 127.0.0.1 has 3 (A2A_GRPC_CONNECTIONS_PER_ADDRESS)"
        )
        assert await well(first)
        server.lost.clear()
        first.writer.close()
        await asyncio.wait_for(server.lost.wait(), PATIENCE)
        async with connected(port) as again:
            assert await well(again)


async def test_a_health_check_gets_in_where_one_client_has_all_that_it_may(
    settings: Settings,
) -> None:
    settings.A2A_GRPC_CONNECTIONS = 10
    async with begun() as (_, port), AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port)) for _ in range(9)]
        for client in clients:
            assert await well(client)
        await turned_away(port)
        async with connected(port, own="127.0.0.2") as other:
            assert await well(other)


async def test_places_are_given_back_when_all_have_left(settings: Settings) -> None:
    settings.A2A_GRPC_CONNECTIONS = 5
    async with begun() as (server, port):
        for _ in range(3):
            async with AsyncExitStack() as stack:
                for _ in range(4):
                    client = await stack.enter_async_context(connected(port))
                    assert await well(client)
            await asyncio.wait_for(gone(server), PATIENCE)
            assert len(server.places) == 0


async def test_a_caller_over_ipv6_has_its_address() -> None:
    async with begun("::1") as (server, port), connected(port, "::1") as client:
        assert await well(client)
        (protocol,) = server.protocols
        assert (protocol.connection.get_peer().addr() or ())[:2] == client.writer.get_extra_info(
            "sockname"
        )[:2]
        assert server.places._taken == {"::/64": 1}
