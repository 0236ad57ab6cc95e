"""SIGTERM ends the server in good order: nothing new, everything open gets its end, exit code 0."""

from __future__ import annotations

import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest

from a2a_tasks.process import listen
from lab.server.client import PATIENCE, asked, get, text
from tests.support.execution.waiting import eventually

if TYPE_CHECKING:
    from lab.server.conftest import Start
    from lab.server.process import ServedApp

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough
DRAIN = 1.0
#: Seconds after the drain by which the process is gone, whatever runs in it: 2, and more for a busy machine.
LATE = 15.0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_exits_with_0_at_once(start: Start, signum: int) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    app.signal(signum)
    assert app.exit_code() == 0, app.transcript()


def test_helpers_start_before_the_first_connection_and_stop_after_the_last(start: Start) -> None:
    app = start()
    with get(app.port, "/stream") as stream:
        assert stream.read(4) == b"open"
        app.signal(signal.SIGTERM)
        assert stream.read() == b"bye"
    assert app.exit_code() == 0
    assert [line.split(" on ")[0] for line in app.said] == [
        "started",
        "listening",
        "told to end",
        "stopped",
    ]


def test_an_open_stream_is_told_to_end_and_its_last_words_arrive(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with get(app.port, "/stream") as stream:
        assert stream.read(4) == b"open"
        app.signal(signal.SIGTERM)
        app.line("told to end")
        assert stream.read() == b"bye"
    assert app.exit_code() == 0, app.transcript()


def test_a_stream_that_does_not_listen_is_cancelled_when_the_drain_is_over(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS=str(DRAIN))
    with get(app.port, "/deaf") as stream:
        assert stream.read(4) == b"open"
        code, seconds = _terminate(app)
    assert code == 0, app.transcript()
    assert DRAIN <= seconds < DRAIN + LATE
    assert app.said[-2:] == ["cancelled", "stopped"]


def test_an_answer_under_way_arrives_whole(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with asked(app.port, "/slow") as sock:
        app.line("slow began")
        app.signal(signal.SIGTERM)
        body = b"".join(iter(lambda: sock.recv(1 << 20), b""))
    assert body.startswith(b"HTTP/1.1 200")
    assert len(body.partition(b"\r\n\r\n")[2]) == 256 * 65_536
    assert app.exit_code() == 0, app.transcript()


def test_nothing_new_is_accepted_once_it_drains(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with get(app.port, "/deaf") as stream:
        assert stream.read(4) == b"open"
        app.signal(signal.SIGTERM)
        app.line("told to end")
        eventually(lambda: refused(app.port))


def refused(port: int) -> bool:
    """Is a new connection refused?"""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_an_idle_connection_does_not_hold_the_drain(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with asked(app.port, "/hello") as sock:
        answer = b""
        while not answer.endswith(b"hello"):
            answer += sock.recv(4096)
        app.signal(signal.SIGTERM)
        assert app.exit_code() == 0, app.transcript()


def test_who_has_just_connected_is_answered_and_told_that_the_connection_closes(
    start: Start,
) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with (
        socket.create_connection(("127.0.0.1", app.port), timeout=PATIENCE) as early,
        get(app.port, "/stream") as stream,
    ):
        assert stream.read(4) == b"open"
        app.signal(signal.SIGTERM)
        app.line("told to end")
        early.sendall(b"GET /hello HTTP/1.1\r\nHost: test\r\n\r\n")
        answer = b"".join(iter(lambda: early.recv(4096), b"")).lower()
    assert answer.startswith(b"http/1.1 200")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.endswith(b"hello")


def test_a_request_that_outlasts_the_drain_is_told_to_come_back(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS=str(DRAIN))
    with asked(app.port, "/thread") as sock:
        app.line("thread began")
        app.signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: sock.recv(4096), b"")).lower()
    assert answer.startswith(b"http/1.1 503")
    assert b"\r\nretry-after: 1\r\n" in answer


def test_a_half_sent_request_holds_it_no_longer_than_the_drain(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS=str(DRAIN))
    with socket.create_connection(("127.0.0.1", app.port)) as sock:
        sock.sendall(b"POST /hello HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf")
        assert text(app.port, "/hello") == "hello"
        code, seconds = _terminate(app)
    assert code == 0, app.transcript()
    assert seconds < DRAIN + LATE


def test_a_thread_that_cannot_be_stopped_does_not_keep_the_process(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS=str(DRAIN))
    with asked(app.port, "/thread"):
        app.line("thread began")
        code, seconds = _terminate(app)
    assert code == 0, app.transcript()
    assert seconds < DRAIN + LATE


def test_sigint_after_another_signal_ends_it_at_once(start: Start) -> None:
    app = start(A2A_DRAIN_SECONDS="60")
    with get(app.port, "/deaf") as stream:
        assert stream.read(4) == b"open"
        app.signal(signal.SIGTERM)
        app.line("told to end")
        app.signal(signal.SIGINT)
        assert app.exit_code() == 128 + signal.SIGINT


def test_a_second_sigterm_changes_nothing(start: Start) -> None:
    """A process of a group gets one for the group and one from its parent."""
    app = start(A2A_DRAIN_SECONDS="60")
    with get(app.port, "/two-pieces") as stream:
        assert stream.read(3) == b"one"
        for _ in range(2):
            app.signal(signal.SIGTERM)
        assert text(app.port, "/release") == "released"  # while it lingers
        assert stream.read() == b"two"
    assert app.exit_code() == 0, app.transcript()


def test_a_port_in_use_is_an_error_that_says_so() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", taken.getsockname()[1])


def _terminate(app: ServedApp) -> tuple[int, float]:
    """Send SIGTERM; the exit code, and the seconds it took."""
    begun = time.monotonic()
    app.signal(signal.SIGTERM)
    return app.exit_code(), time.monotonic() - begun
