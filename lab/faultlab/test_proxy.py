"""The lab's TCP proxy does to connections what it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from lab.faultlab.private import eventually
from tests.support.proxy import Behaviour, Proxy, Way

pytestmark = pytest.mark.backend("stack")


class Echo:
    """A server that sends back what it gets, and remembers it."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                self.heard += data
                connection.sendall(data)


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.listener.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy(echo.port, seed=1) as made:
        yield made


def connect(proxy: Proxy, timeout: float = 5) -> socket.socket:
    return socket.create_connection((proxy.host, proxy.port), timeout=timeout)


def ask(connection: socket.socket, text: bytes = b"hello") -> bytes:
    connection.sendall(text)
    return connection.recv(65_536)


def is_reset(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)
    return False


def test_it_passes_both_ways_and_counts(proxy: Proxy) -> None:
    with connect(proxy) as one, connect(proxy) as two:
        assert ask(one) == ask(two) == b"hello"
        assert (proxy.accepted, proxy.open) == (2, 2)
    eventually(lambda: proxy.open == 0, 5, "the proxy keeps ended connections")


def test_the_end_of_one_way_is_passed_on(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"last words")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b"last words"
        assert connection.recv(100) == b""


def test_latency_holds_each_piece_back(proxy: Proxy) -> None:
    proxy.behave(Behaviour(latency=0.05, jitter=0.01))
    with connect(proxy) as connection:
        begun = time.monotonic()
        assert ask(connection) == b"hello"
        assert time.monotonic() - begun >= 0.08


def test_a_refusing_proxy_refuses_new_connections_and_keeps_the_open_ones(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        ask(connection)
        proxy.behave(Behaviour(refusing=True))
        with pytest.raises(ConnectionRefusedError):
            connect(proxy)
        assert ask(connection) == b"hello"
    proxy.behave()
    with connect(proxy) as again:
        assert ask(again) == b"hello"


def test_a_black_hole_accepts_and_swallows_and_its_connections_are_reset_afterwards(
    proxy: Proxy, echo: Echo
) -> None:
    with connect(proxy) as before:
        ask(before)
        proxy.behave(Behaviour.black_hole())
        with connect(proxy) as within:
            for connection in (before, within):
                connection.sendall(b"lost")
                assert is_silent(connection)
            proxy.behave()
            assert is_reset(before)
            assert is_reset(within)
    assert b"lost" not in echo.heard


def test_a_partition_delivers_late_what_was_sent(proxy: Proxy) -> None:
    with connect(proxy) as before:
        ask(before)
        proxy.behave(Behaviour.partition())
        with connect(proxy) as within:
            for connection in (before, within):
                connection.sendall(b"late")
                assert is_silent(connection)
            proxy.behave()
            assert before.recv(100) == within.recv(100) == b"late"


def test_a_client_that_leaves_in_a_partition_is_missed_only_afterwards(
    proxy: Proxy, echo: Echo
) -> None:
    connection = connect(proxy)
    ask(connection)
    proxy.behave(Behaviour.partition())
    connection.sendall(b"farewell")
    connection.close()
    proxy.behave()
    eventually(lambda: b"farewell" in echo.heard, 5, "the last words did not arrive")
    eventually(lambda: proxy.open == 0, 5, "the connection is still there")


def test_one_way_only_the_answers_are_lost(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        ask(connection)
        proxy.behave(Behaviour.one_way())
        connection.sendall(b"write")
        eventually(lambda: b"write" in echo.heard, 5, "the server heard nothing")
        assert is_silent(connection)
        proxy.behave()
        assert is_reset(connection)


def test_a_reset_ends_all_open_connections_now(proxy: Proxy) -> None:
    with connect(proxy) as one, connect(proxy) as two:
        ask(one), ask(two)
        proxy.reset()
        assert is_reset(one)
        assert is_reset(two)
    eventually(lambda: proxy.open == 0, 5, "a connection is still there")


def test_resets_come_again_and_again_until_it_is_told_otherwise(proxy: Proxy) -> None:
    proxy.behave(Behaviour(reset_every=0.05))
    for _ in range(3):
        with connect(proxy) as connection:
            assert is_reset(connection)
    proxy.behave()
    with connect(proxy) as connection:
        ask(connection)
        assert is_silent(connection)


def test_a_connection_is_cut_after_its_bytes(proxy: Proxy) -> None:
    proxy.behave(Behaviour(cut_after=7))
    with connect(proxy) as connection:
        assert ask(connection) == b"he"
        assert is_reset(connection)


def test_it_holds_one_way_and_passes_the_other(proxy: Proxy, echo: Echo) -> None:
    with connect(proxy) as connection:
        ask(connection)
        proxy.behave(Behaviour(down=Way.HOLD))
        connection.sendall(b"heard")
        eventually(lambda: b"heard" in echo.heard, 5, "the server heard nothing")
        assert is_silent(connection)
        proxy.behave()
        assert connection.recv(100) == b"heard"


def test_a_new_target_is_for_new_connections(proxy: Proxy, echo: Echo) -> None:
    other = Echo()
    with connect(proxy) as before, contextlib.closing(other.listener):
        ask(before)
        proxy.retarget(other.port)
        with connect(proxy) as after:
            ask(before, b"old")
            ask(after, b"new")
    assert echo.heard.endswith(b"old")
    assert other.heard == b"new"


def test_a_target_that_is_gone_ends_the_connection(proxy: Proxy, echo: Echo) -> None:
    echo.listener.close()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy.retarget(unused.getsockname()[1])
        with connect(proxy) as connection:
            connection.sendall(b"hello")
            assert is_reset(connection)
