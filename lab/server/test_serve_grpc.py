"""`manage.py serve_grpc` as a process: how it begins, what it says when it cannot, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2

from a2a_project.grpc_health import serves
from a2a_project.management.commands import serve_grpc
from a2a_tasks.conf import conf, forget
from tests.journeys.hosts import APPS
from tests.support.ports import free_port
from tests.support.printing_process import PATIENCE
from tests.support.processes import Child, python

_SAYS = "Serving gRPC on "
pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def served(host: str = "127.0.0.1", **environ: str) -> Iterator[tuple[Child, str]]:
    """A process on a free port, and its address."""
    arguments = ["-m", "django", "serve_grpc", "--host", host, "--port", "0"]
    with python(arguments, {**APPS, "A2A_RUNS": "local", **environ}) as process:
        process.wait_for(_SAYS)
        line = next(line for line in process.log.splitlines() if line.startswith(_SAYS))
        yield process, line.removeprefix(_SAYS).strip()


def test_it_serves_until_it_is_asked_to_end_and_tells_its_streams() -> None:
    message = a2a_pb2.Message(message_id="m", role=a2a_pb2.ROLE_USER, parts=[{"text": "sleep 60"}])
    request = a2a_pb2.SendMessageRequest(message=message).SerializeToString()
    with served(A2A_DRAIN_SECONDS="5") as (process, address):
        assert serves(address)
        with grpc.insecure_channel(address) as channel:
            call: Any = channel.unary_stream("/lf.a2a.v1.A2AService/SendStreamingMessage")
            items = call(request, timeout=PATIENCE)
            assert a2a_pb2.StreamResponse.FromString(next(items)).HasField("task")
            process.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.RpcError) as caught:
                list(items)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert process.process.wait(PATIENCE) == 0
    assert not serves(address)


def test_it_serves_ipv6_and_says_so_as_clients_write_it() -> None:
    with served("::1") as (_, address):
        assert address.startswith("[::1]:")
        assert serves(address)


def test_a_port_that_is_no_address_is_refused_in_words() -> None:
    with python(["-m", "django", "serve_grpc", "--host", "192.0.2.1", "--port", "1"]) as process:
        assert process.process.wait(PATIENCE) == 1
        process.wait_for("192.0.2.1 is not an address of this machine")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The sockets on which the embedded host serves gRPC. A2A_GRPC_PORT is not set; the usual port is the test's own."""
    monkeypatch.delenv("A2A_GRPC_PORT", raising=False)
    monkeypatch.setattr(serve_grpc, "USUAL_PORT", free_port())
    sockets: list[socket.socket] = []
    monkeypatch.setattr("a2a_project.grpc_process.serve_in_background", sockets.append)
    yield sockets
    for sock in sockets:
        sock.close()
    os.environ.pop("A2A_GRPC_PORT", None)
    forget()


@contextmanager
def taken(port: int) -> Iterator[None]:
    """A port that another host has, which would share it."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


class TestThePortOfTheEmbeddedHost:
    def test_is_the_usual_one(self, begun: list[socket.socket]) -> None:
        assert serve_grpc.serve_in_background("127.0.0.1") == ""
        assert conf.GRPC_PORT == serve_grpc.USUAL_PORT
        assert [sock.getsockname()[1] for sock in begun] == [serve_grpc.USUAL_PORT]

    def test_is_none_if_that_is_taken_by_another_host_too(self, begun: list[socket.socket]) -> None:
        with taken(serve_grpc.USUAL_PORT):
            said = serve_grpc.serve_in_background("127.0.0.1")
        assert said.startswith("No gRPC: Port")
        assert "A2A_GRPC_PORT=" in said
        assert (conf.GRPC_PORT, begun) == (0, [])

    @pytest.mark.parametrize("said", ["", "0"])
    def test_is_none_if_the_variable_says_so(
        self, said: str, begun: list[socket.socket], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("A2A_GRPC_PORT", said)
        forget()
        assert serve_grpc.serve_in_background("127.0.0.1") == ""
        assert begun == []

    def test_is_what_the_variable_says(
        self, begun: list[socket.socket], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = free_port()
        monkeypatch.setenv("A2A_GRPC_PORT", str(port))
        forget()
        assert serve_grpc.serve_in_background("127.0.0.1") == ""
        assert [sock.getsockname()[1] for sock in begun] == [port]


@pytest.mark.parametrize("command", [["up", "--port", "0"], ["serve_grpc"]], ids=["up", "grpc"])
def test_a_given_port_that_is_taken_ends_the_process_with_one_line(command: list[str]) -> None:
    port = free_port()
    with taken(port), python(["-m", "django", *command], {"A2A_GRPC_PORT": str(port)}) as process:
        assert process.process.wait(2 * PATIENCE) == 1
        process.wait_for(f"Port {port} on 127.0.0.1 is taken by another process")
        assert f"A2A_GRPC_PORT={port + 1}" in process.log or command == ["serve_grpc"]
        assert "Traceback" not in process.log
