"""The server bounds the heads of requests, answers once, and answers in HTTP."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from lab.server.client import text
from lab.server.test_slow_requests import HEAD, answer, connected

if TYPE_CHECKING:
    from lab.server.conftest import Start
    from lab.server.process import ServedApp

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough
MIB = 1024 * 1024
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
HEADS = {
    "one long line": HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
    "a line that others would take": HEAD + b"X: " + b"x" * 18_000 + b"\r\n\r\n",
    "a long path": b"GET /" + b"x" * 18_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    "a line without an end": HEAD + b"X: " + b"x" * 64 * MIB,
    "a name without an end": HEAD + b"x" * MIB,
    "a path without an end": b"GET /" + b"x" * MIB,
    "many lines": HEAD + b"X: 1\r\n" * 101 + b"\r\n",
    "lines without an end": HEAD + b"X: 1\r\n" * MIB,
    "long lines, each of which would do": HEAD + (b"X: " + b"x" * 1000 + b"\r\n") * 70 + b"\r\n",
}
AFTER_THE_HEAD = {
    "trailers": CHUNKED + b"\r\n2\r\nhi\r\n0\r\nX: " + b"x" * 2 * MIB + b"\r\n\r\n",
    "many trailers": CHUNKED + b"\r\n2\r\nhi\r\n0\r\n" + b"X: 1\r\n" * 150 + b"\r\n",
    "an extension of a chunk": CHUNKED + b"\r\n2;" + b"x" * 2 * MIB + b"\r\nhi\r\n0\r\n\r\n",
    "many extensions": CHUNKED
    + b"\r\n"
    + (b"1;" + b"x" * 900 + b"\r\nx\r\n") * 5000
    + b"0\r\n\r\n",
}


def answered(port: int, request: bytes) -> bytes:
    """What the server answers to who sends all of this, or as much as it takes, and then listens."""
    with connected(port) as sock:
        with contextlib.suppress(OSError):  # it takes no more
            sock.sendall(request)
        return answer(sock)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_a_head_that_is_too_large_is_refused(shared: ServedApp, head: bytes) -> None:
    before = int(text(shared.port, "/memory"))
    found = answered(shared.port, head)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert b"content-type: text/plain" in found
    assert found.count(b"HTTP/1.1") == 1
    assert int(text(shared.port, "/memory")) - before < 8 * 1024


@pytest.mark.parametrize("request_", AFTER_THE_HEAD.values(), ids=AFTER_THE_HEAD.keys())
def test_so_is_what_comes_around_a_body(shared: ServedApp, request_: bytes) -> None:
    found = answered(shared.port, request_)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert found.count(b"HTTP/1.1") == 1
    assert text(shared.port, "/hello") == "hello"


def test_a_head_that_just_fits_is_taken(shared: ServedApp) -> None:
    head = HEAD + b"Connection: close\r\nContent-Length: 2\r\n" + b"X: 1\r\n" * 96
    assert answered(shared.port, head + b"\r\nhi").endswith(b"2")
    long = (b"X: " + b"x" * 15_000 + b"\r\n") * 4
    begun = HEAD + b"Connection: close\r\nContent-Length: 2\r\n"
    assert answered(shared.port, begun + long + b"\r\nhi").endswith(b"2")


def test_a_body_in_the_smallest_pieces_is_taken(shared: ServedApp) -> None:
    body = b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n"
    found = answered(shared.port, CHUNKED + b"Connection: close\r\n\r\n" + body)
    assert found.endswith(b"50000")


def test_many_requests_of_one_connection_are_counted_each_alone(shared: ServedApp) -> None:
    head = HEAD + b"Content-Length: 2\r\n" + b"X: " + b"x" * 16_000 + b"\r\n\r\nhi"
    with connected(shared.port) as sock:
        for _ in range(8):
            sock.sendall(head)
            assert received(sock).endswith(b"2")


def received(sock: socket.socket) -> bytes:
    """One whole answer of `/size`."""
    found = b""
    while not found.endswith(b"\r\n\r\n2"):
        piece = sock.recv(4096)
        assert piece, found
        found += piece
    return found


def test_a_head_buys_no_time(start: Start) -> None:
    app = start(
        A2A_REQUEST_SECONDS="1", A2A_REQUEST_BYTES_PER_SECOND="1000"
    )  # a second, and one more for each 1,000 bytes of a body
    with connected(app.port) as sock:
        sock.sendall(HEAD + b"X: " + b"x" * 30_000)
        sock.settimeout(10)
        assert sock.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_transfer_coding_said_twice_is_refused_once(shared: ServedApp) -> None:
    twice = CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    found = answered(shared.port, twice)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1") == 1


def test_who_asks_for_a_websocket_gets_the_answer_of_http(shared: ServedApp) -> None:
    upgrade = b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    found = answered(
        shared.port, b"GET /hello HTTP/1.1\r\nHost: test\r\n" + upgrade + key + b"\r\n"
    )
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.endswith(b"hello")


def test_who_offers_an_upgrade_has_its_body_read(shared: ServedApp) -> None:
    """As Java's own client does with every first request: `Upgrade: h2c`, then the body."""
    offered = b"Connection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello"
    found = answered(shared.port, HEAD + offered)
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.endswith(b"5")


def test_a_form_is_the_applications_to_read(shared: ServedApp) -> None:
    form = b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\nConnection: close\r\n"
    assert answered(shared.port, HEAD + form + b"\r\n--x--").endswith(b"5")
