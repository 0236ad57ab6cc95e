"""The server delivers at once, notices who left, holds back for who does not read, and survives errors."""

from __future__ import annotations

import asyncio
import http.client
from typing import TYPE_CHECKING

import pytest

from lab.server.apps import FLOOD_BYTES
from lab.server.client import asked, get, text

if TYPE_CHECKING:
    import socket

    from lab.server.conftest import Start
    from lab.server.process import ServedApp

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough
#: What the server may hold for a client that reads nothing, in MiB.
HELD_MIB = 32
CROWD = 300


def test_a_piece_arrives_before_the_next_one_is_made(shared: ServedApp) -> None:
    with get(shared.port, "/two-pieces") as stream:
        assert stream.read(3) == b"one"
        assert text(shared.port, "/release") == "released"
        assert stream.read() == b"two"


def test_a_client_that_goes_away_is_noticed_at_once(shared: ServedApp) -> None:
    with asked(shared.port, "/stream") as sock:
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    shared.line("client left", patience=5)


def test_a_client_that_reads_nothing_of_200_mb_costs_no_memory(start: Start) -> None:
    app = start()
    before = int(text(app.port, "/memory"))
    with asked(app.port, "/flood") as sock:
        held_back = app.line("flood held back after")
        grown = int(text(app.port, "/memory")) - before
        assert grown < HELD_MIB * 1024, f"{grown} KiB more for a client that reads nothing"
        assert int(held_back.split()[-2]) < HELD_MIB * 1024 * 1024
        assert _read_to_the_end(sock) > FLOOD_BYTES
    app.line("flood sent")
    assert int(text(app.port, "/memory")) - before < HELD_MIB * 1024


def test_three_hundred_new_connections_at_once_are_all_answered(shared: ServedApp) -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
        writer.write(b"GET /hello HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    async def crowd() -> list[bytes]:
        return await asyncio.wait_for(asyncio.gather(*(ask() for _ in range(CROWD))), timeout=30)

    answers = asyncio.run(crowd())
    assert [a for a in answers if not a.endswith(b"hello")] == []


def test_a_connection_is_kept_for_the_next_request(shared: ServedApp) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=30)
    for _ in range(3):
        connection.request("GET", "/hello")
        assert connection.getresponse().read() == b"hello"
    connection.close()


def test_an_error_before_the_answer_is_a_500_without_its_text(shared: ServedApp) -> None:
    with get(shared.port, "/error") as response:
        assert response.status == 500
        assert b"on purpose" not in response.read()


def test_an_error_within_a_stream_cuts_it_so_that_it_does_not_look_whole(shared: ServedApp) -> None:
    with (
        get(shared.port, "/error-midway") as response,
        pytest.raises((http.client.HTTPException, ConnectionError)),
    ):
        while response.read(4) != b"":
            pass
    assert text(shared.port, "/hello") == "hello"


def test_forwarded_headers_of_strangers_are_not_believed(shared: ServedApp) -> None:
    headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    assert text(shared.port, "/caller", headers) == "http 127.0.0.1"


def test_forwarded_headers_of_a_trusted_proxy_are_believed_but_not_what_it_was_told(
    start: Start,
) -> None:
    app = start(TRUSTED_PROXIES="127.0.0.1")
    headers = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9", "X-Forwarded-Proto": "https"}
    assert text(app.port, "/caller", headers) == "https 203.0.113.9"


def test_requests_are_logged_only_when_asked_for(start: Start) -> None:
    quiet, chatty = start(), start("--access-log")
    for app in (quiet, chatty):
        text(app.port, "/hello")
        app.signal(15)
        assert app.exit_code() == 0
    assert "/hello" not in quiet.transcript()
    assert "/hello" in chatty.transcript()


def _read_to_the_end(sock: socket.socket) -> int:
    """Bytes read, framing included, until the last chunk's end."""
    total, tail = 0, b""
    while not tail.endswith(b"0\r\n\r\n"):
        data = sock.recv(1 << 20)
        assert data, "cut before the end"
        total, tail = total + len(data), (tail + data)[-5:]
    return total
