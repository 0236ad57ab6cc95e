"""Connections with TLS that come to nothing."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from pytest_django import Settings

from a2a_project.grpc_server import _tls
from a2a_project.grpc_server.connection import Connection
from a2a_project.grpc_server.limits import Limits
from a2a_tasks.bindings.grpc.call import Call
from tests.support.bindings.authority import Authority
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, Open


async def all_at_once(client: Client) -> None:
    """Shake hands without the name of a protocol, and send what was prepared together with the last of it."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    line = trusting.wrap_bio(came, goes)
    while True:
        try:
            line.do_handshake()
        except ssl.SSLWantReadError:
            client.writer.write(goes.read())
            came.write(await client.reader.read(65_536))
        else:
            break
    line.write(client.h2.data_to_send())
    client.writer.write(goes.read())


async def test_nothing_is_begun_for_whoever_names_no_protocol(
    settings: Settings, tmp_path: Path
) -> None:
    chain, key = Authority(tmp_path).issue("server")
    settings.A2A_GRPC_CERTIFICATE, settings.A2A_GRPC_KEY = str(chain), str(key)
    begun: list[Call] = []
    met = Open()

    async def begin(call: Call) -> None:
        begun.append(call)

    server = await asyncio.get_running_loop().create_server(
        lambda: Connection({b"/a.B/Echo": begin}, Limits(), met.add, met.lose),
        "127.0.0.1",
        0,
        ssl=_tls(),
        ssl_shutdown_timeout=0.1,
    )
    async with server, asyncio.timeout(PATIENCE):
        client = Client(*await asyncio.open_connection(*server.sockets[0].getsockname()))
        client.h2.initiate_connection()
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, list(HEADERS.items()), end_stream=True)
        await all_at_once(client)
        await client.reader.read()
        client.writer.close()
    assert not begun
    assert not met
