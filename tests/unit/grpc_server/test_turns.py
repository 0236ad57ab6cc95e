"""Much that comes at once is taken piece by piece, and the others have their turns between."""

from __future__ import annotations

import asyncio
import socket

import uvloop
from h2 import events

from a2a_project.grpc_server.connection import MOUTHFUL, Connection
from a2a_project.grpc_server.limits import Limits
from tests.support.grpc_server.client import HEADERS, PATIENCE, Client, Open, connected, served
from tests.unit.grpc_server.test_connection import ECHO, Waiting
from tests.unit.grpc_server.test_frames import raw

#: A frame that nobody knows, so that there is something to read.
FILLING = raw(0x99, 0, b"x" * 16_000)
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + raw(4, 0)


def test_a_piece_is_taken_in_a_turn_however_much_waits() -> None:
    # The loop that reads on is uvloop.
    taken = uvloop.run(_taken_by_turns())
    assert sum(taken.values()) > 4 * MOUTHFUL
    assert max(taken.values()) <= 2 * MOUTHFUL  # the last of one reading, and the first of the next


async def _taken_by_turns() -> dict[int, int]:
    """Bytes that a server takes in each turn of its loop, of a client that sent all it could before the first."""
    loop, met, turn = asyncio.get_running_loop(), Open(), 0
    taken: dict[int, int] = {}
    enough = asyncio.Event()

    def count() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count)

    class Observed(Connection):
        def _take(self, data: bytes) -> None:
            super()._take(data)
            taken[turn] = taken.get(turn, 0) + len(data)
            if sum(taken.values()) > 4 * MOUTHFUL:
                enough.set()

    server = await loop.create_server(
        lambda: Observed(ECHO, Limits(), met.add, met.lose), "127.0.0.1", 0
    )
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        client.setblocking(False)
        assert client.send(HELLO + FILLING * 40) > 8 * MOUTHFUL
        count()
        await asyncio.wait_for(enough.wait(), PATIENCE)
    server.close()
    return taken


async def test_what_comes_in_pieces_is_all_there() -> None:
    async with served(ECHO) as (port, _), connected(port) as client:
        for _ in range(4):
            client.send(FILLING * 10)
            streams = [client.call(b"x" * 900) for _ in range(60)]
            for stream in streams:
                assert await client.status(stream) == ("0", "")
                assert client.answers(stream) == [b"x" * 900]
            client.h2.increment_flow_control_window(60_000)


async def test_nothing_is_begun_for_a_client_that_is_gone() -> None:
    handler = Waiting()
    async with served({b"/a.B/Echo": handler}) as (port, open_ones), connected(port) as client:
        await client.until(events.SettingsAcknowledged)
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, list(HEADERS.items()), end_stream=True)
        (connection,) = open_ones
        connection.data_received(FILLING * 3 + client.h2.data_to_send())
        connection.connection_lost(None)
        again = Client(*await asyncio.open_connection("127.0.0.1", port))
        again.hello()
        await again.until(events.SettingsAcknowledged)
        again.writer.close()
        assert not handler.began.is_set()
        assert not connection._calls
