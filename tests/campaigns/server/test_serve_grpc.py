"""`manage.py serve_grpc` as a process: how it begins, what it says when it cannot, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2
from django.core.management import CommandError, call_command
from pytest_django import Settings

from a2a_project.grpc_health import serves
from a2a_tasks.management.commands import serve_grpc, stack
from tests.campaigns.server.process import PATIENCE
from tests.journeys.hosts import APPS
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


def test_without_its_packages_it_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_grpc, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"pip install -r requirements-grpc\.txt"):
        call_command("serve_grpc")


def test_the_stack_has_its_process_if_there_is_a_port(settings: Settings) -> None:
    assert stack.grpc("127.0.0.1") == []
    settings.A2A_GRPC_PORT = 50051
    (program,) = stack.grpc("127.0.0.1")
    assert program.command[-5:] == ("serve_grpc", "--host", "127.0.0.1", "--port", "50051")


def test_the_embedded_host_has_it_beside_http_only_if_there_is_a_port(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "a2a_project.grpc_server.beside", lambda host, port: asked.append((host, port))
    )
    serve_grpc.beside("127.0.0.1")
    assert asked == []
    settings.A2A_GRPC_PORT = 50051
    serve_grpc.beside("127.0.0.1")
    assert asked == [("127.0.0.1", 50051)]
