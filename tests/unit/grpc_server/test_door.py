"""Who gets in: every limit begins when a connection is accepted, before its TLS handshake."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
import uvloop
from pytest_django import Settings

from a2a_grpc.server import Server, door, make_server
from a2a_project.operations import TABLE
from tests.support.bindings.authority import Authority
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, connected, dialled

LOG = "a2a_grpc.server"
CHECK = {**HEADERS, ":path": "/grpc.health.v1.Health/Check"}


@pytest.fixture
def authority(tmp_path: Path, settings: Settings) -> Authority:
    """The issuer of the server's certificate, which has TLS."""
    made = Authority(tmp_path)
    settings.A2A_GRPC_CERTIFICATE, settings.A2A_GRPC_KEY = map(str, made.issue("server"))
    return made


@asynccontextmanager
async def begun() -> AsyncIterator[tuple[Server, int]]:
    """A server as the settings have it, and its port."""
    server = make_server(TABLE)
    port = await server.listen("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.stop()


@asynccontextmanager
async def silent(port: int, own: str) -> AsyncIterator[asyncio.StreamReader]:
    """A connection from an address that says nothing, not even hello."""
    async with dialled(port, own=own) as (reader, _):
        yield reader


async def is_served(port: int, authority: Authority, own: str) -> bool:
    """Whether a client with TLS is answered."""
    context = ssl.create_default_context(cafile=str(authority.path))
    context.set_alpn_protocols(["h2"])
    client = Client(
        *await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(own, 0), ssl=context, server_hostname="localhost"
        )
    )
    client.hello()
    try:
        return await client.status(client.call(b"", headers=CHECK)) == ("0", "")
    finally:
        client.writer.transport.abort()


async def until_held(server: Server, count: int) -> None:
    """Wait until this many connections have places."""
    async with asyncio.timeout(PATIENCE):
        while len(server.places) != count:  # noqa: ASYNC110 - they come and go in the next turns of the loop
            await asyncio.sleep(0)


async def crowd(server: Server, port: int, authority: Authority) -> None:
    """Show that silent connections take the places of one address, and no more."""
    async with AsyncExitStack() as stack:
        for _ in range(50):
            await stack.enter_async_context(silent(port, "127.0.0.9"))
        await until_held(server, 50)
        assert not server.protocols  # none of them has finished its handshake
        for _ in range(10):
            reader = await stack.enter_async_context(silent(port, "127.0.0.9"))
            async with asyncio.timeout(PATIENCE):
                assert await reader.read() == b""
        assert await is_served(port, authority, "127.0.0.1")
    await until_held(server, 0)


def test_connections_that_say_nothing_to_tls_take_the_places_of_their_address_alone(
    authority: Authority, settings: Settings
) -> None:
    settings.A2A_GRPC_CONNECTIONS_PER_ADDRESS = 50

    async def story() -> None:
        async with begun() as (server, port):
            await crowd(server, port, authority)

    uvloop.run(story())  # as every process of the host


async def test_a_handshake_that_does_not_come_gives_its_place_back(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "HANDSHAKE_SECONDS", 0.2)
    async with begun() as (server, port), silent(port, "127.0.0.9") as reader:
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        await until_held(server, 0)
        assert await is_served(port, authority, "127.0.0.9")


async def test_what_is_no_tls_gives_its_place_back(authority: Authority) -> None:
    async with begun() as (server, port):
        async with dialled(port) as (reader, writer), asyncio.timeout(PATIENCE):
            writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
            with suppress(ConnectionResetError):
                await reader.read()
        await until_held(server, 0)


async def test_the_stop_of_a_server_ends_handshakes(authority: Authority) -> None:
    async with begun() as (server, port), silent(port, "127.0.0.9") as reader:
        await until_held(server, 1)
        await asyncio.wait_for(server.stop(), PATIENCE)
        assert len(server.places) == 0
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Nothing more can be opened."""
    free = os.dup(0)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_server_without_descriptors_says_so_and_serves_again_afterwards(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(door, "REST_SECONDS", 0.05)
    caplog.set_level(logging.WARNING, LOG)
    async with begun() as (server, port):
        with socket.socket() as waiting:
            waiting.setblocking(False)
            with no_descriptors():
                waiting.connect_ex(("127.0.0.1", port))
                async with asyncio.timeout(PATIENCE):
                    while not caplog.records:  # noqa: ASYNC110 - the log tells nobody
                        await asyncio.sleep(0)
            await until_held(server, 1)  # the one that waited
        async with connected(port) as client:
            assert (await client.status(client.call(b"", headers=CHECK)))[0] == "0"
    (line,) = [record.getMessage() for record in caplog.records if record.name == LOG]
    assert line.startswith("the system accepts no gRPC connection: [Errno 24]")
