"""A server of the tests leaves no socket to the collector."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings

from tests.support.listeners import close_listener


async def test_who_is_being_accepted_when_a_server_ends_is_not_lost() -> None:
    met: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: met.append(writer), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()[:2]):
        for _ in range(2):  # now the socket is accepted, and its transport is not there yet
            await asyncio.sleep(0)
        assert not met
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always", ResourceWarning)
            await close_listener(server)
            lost = not met
            while met:
                met.pop().transport.abort()
            await asyncio.sleep(0)
            gc.collect()
    assert not lost
    assert not [str(each.message) for each in seen]
