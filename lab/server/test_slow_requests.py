"""The server cuts off who sends a request too slowly, and the host takes no larger body than it says."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lab.server.client import PATIENCE, get, text
from tests.journeys.hosts import web

if TYPE_CHECKING:
    from lab.server.conftest import Start

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough
#: A server that does not wait long, and for which bytes buy hardly any time.
HURRIED = {"A2A_REQUEST_SECONDS": "1", "A2A_REQUEST_BYTES_PER_SECOND": "1000000"}
SEND = b"POST /agents/demo/message:send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HEAD = b"POST /size HTTP/1.1\r\nHost: test\r\n"


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        yield sock


def dripped(sock: socket.socket, data: bytes) -> bytes:
    """Send this byte by byte, ten a second, until the server has enough of it; what it answered."""
    sock.settimeout(0.1)
    try:
        for byte in data:
            with contextlib.suppress(OSError):  # closed: its answer is still to be read
                sock.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                return sock.recv(4096)
    finally:
        sock.settimeout(PATIENCE)
    raise AssertionError("the server took all of it")


def answer(sock: socket.socket) -> bytes:
    """Everything until the connection is closed."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            found += piece
    return found


class TestWhatComesTooSlowly:
    def test_a_head_is_cut_off(self, start: Start) -> None:
        app = start(**HURRIED)
        with connected(app.port) as sock:
            assert dripped(sock, HEAD + b"X-Slow: " + b"x" * 600).startswith(b"HTTP/1.1 408 ")
        assert text(app.port, "/hello") == "hello"

    @pytest.mark.parametrize("framing", [b"Content-Length: 600", b"Transfer-Encoding: chunked"])
    def test_a_body_is_cut_off(self, start: Start, framing: bytes) -> None:
        app = start(**HURRIED)
        with connected(app.port) as sock:
            sock.sendall(
                HEAD + framing + b"\r\n\r\n" + (b"258\r\n" if b"chunked" in framing else b"")
            )
            assert dripped(sock, b"x" * 600).startswith(b"HTTP/1.1 408 ")
            assert answer(sock) == b""
        assert text(app.port, "/hello") == "hello"

    def test_so_is_the_second_request_of_a_connection(self, start: Start) -> None:
        app = start(**HURRIED)
        with connected(app.port) as sock:
            sock.sendall(HEAD + b"Content-Length: 2\r\n\r\nhi")
            found = b""
            while not found.endswith(b"2"):
                found += sock.recv(4096)
            assert dripped(sock, HEAD + b"X-Slow: " + b"x" * 600).startswith(b"HTTP/1.1 408 ")

    def test_a_body_buys_time_by_its_bytes(self, start: Start) -> None:
        app = start(A2A_REQUEST_SECONDS="1", A2A_REQUEST_BYTES_PER_SECOND="1000")
        with connected(app.port) as sock:
            sock.sendall(HEAD + b"Content-Length: 16000\r\n\r\n")
            for _ in range(16):  # in nearly two seconds, ten times as fast as it has to be
                sock.sendall(b"x" * 1000)
                time.sleep(0.12)
            assert sock.recv(4096).endswith(b"16000")

    def test_an_application_hears_that_its_client_is_gone(self, start: Start) -> None:
        app = start(**HURRIED)
        with connected(app.port) as sock:
            sock.sendall(HEAD + b"Content-Length: 600\r\n\r\n")
            app.line("body began")
            assert dripped(sock, b"x" * 600).startswith(b"HTTP/1.1 408 ")
            app.line("body broken off")

    def test_an_answer_may_last(self, start: Start) -> None:
        app = start(**HURRIED)
        with get(app.port, "/two-pieces") as stream, connected(app.port) as slow:
            assert stream.read(3) == b"one"
            assert dripped(slow, HEAD + b"x" * 600).startswith(b"HTTP/1.1 408 ")
            assert text(app.port, "/release") == "released"
            assert stream.read() == b"two"


@pytest.fixture
def small(emptied: None) -> Iterator[int]:
    """The port of a host that takes bodies of 1,000 bytes."""
    with web({"A2A_MAX_BODY_BYTES": "1000"}) as site:
        yield int(site.url.rpartition(":")[2])


@pytest.mark.django_db(transaction=True)
class TestABodyThatIsTooLarge:
    def test_is_refused_when_it_says_so(self, small: int) -> None:
        with connected(small) as sock:
            sock.sendall(SEND + b"Content-Length: 1001\r\n\r\n")
            assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")

    def test_is_refused_as_soon_as_it_is(self, small: int) -> None:
        with connected(small) as sock:
            sock.sendall(SEND + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(11):
                sock.sendall(b"64\r\n" + b"x" * 100 + b"\r\n")
            assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")

    def test_is_read_to_its_end_by_a_client_that_writes_first(self, small: int) -> None:
        with connected(small) as sock:
            sock.sendall(SEND + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000)
            assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")
        assert text(small, "/healthz")

    def test_one_that_just_fits_is_read(self, small: int) -> None:
        for framing, body in (
            (b"Content-Length: 1000", b"x" * 1000),
            (b"Transfer-Encoding: chunked", b"3e8\r\n" + b"x" * 1000 + b"\r\n0\r\n\r\n"),
        ):
            with connected(small) as sock:
                sock.sendall(SEND + framing + b"\r\nConnection: close\r\n\r\n" + body)
                assert answer(sock).startswith(b"HTTP/1.1 400 ")  # it is no JSON
