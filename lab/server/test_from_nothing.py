"""The two ways to start a host, as a person starts them: `up` on SQLite, `make stack` on real servers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from tests import backend
from tests.support.execution.waiting import eventually
from tests.support.ports import free_port
from tests.support.printing_process import PATIENCE, Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds for a stack of three processes to come up, or to go.
LONG = 60.0


@pytest.mark.backend("sqlite")
def test_up_serves_from_an_empty_folder_and_shows_the_password_only_the_first_time(
    tmp_path: Path,
) -> None:
    env = {**backend.children(), "VAR_DIR": str(tmp_path / "var"), "PORT": "0"}
    for first in (True, False):
        with Process(sys.executable, "manage.py", "up", env=env) as host:
            url = host.line("  start", LONG).split()[-1]
            assert echo(url) == "hello"
            host.signal(signal.SIGTERM)
            assert host.exit_code() == 0, host.transcript()
            shown = [line for line in host.said if "with the password" in line]
            assert len(shown) == (1 if first else 0)


@pytest.mark.backend("sqlite")
@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_up_on_ipv6_prints_addresses_that_answer(tmp_path: Path) -> None:
    port = free_port()
    own = {"HOST": "::", "PORT": "0", "A2A_GRPC_PORT": str(port), "A2A_ANONYMOUS": "1"}
    env = {**backend.children(), "VAR_DIR": str(tmp_path / "var"), **own}
    with Process(sys.executable, "manage.py", "up", env=env) as host:
        url = host.line("  start", LONG).split()[-1]
        assert url.startswith("http://[::1]:")
        grpc_at = host.line("  gRPC").split()[-1]
        tried = subprocess.run(  # noqa: S603 - the line that the host prints
            shlex.split(host.line("  try").removeprefix("  try")), capture_output=True, check=True
        )
        card = json.load(urllib.request.urlopen(f"{url}.well-known/agent-card.json"))  # noqa: S310
        with grpc.insecure_channel(grpc_at) as channel:
            grpc.channel_ready_future(channel).result(PATIENCE)
        host.signal(signal.SIGTERM)
        assert host.exit_code() == 0, host.transcript()
    task = json.loads(tried.stdout)["result"]["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "hello"}]
    assert grpc_at == f"[::1]:{port}"
    assert all(each["url"].startswith(url) for each in card["supportedInterfaces"])


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_the_stack_answers_and_ends_together(tmp_path: Path) -> None:
    env = {**backend.children(), "A2A_ANONYMOUS": "1", "VAR_DIR": str(tmp_path)}
    with make_stack(env) as (stack, url):
        assert echo(f"{url}/") == "hello"
        stack.signal(signal.SIGTERM)
        stack.exit_code(LONG)
        ended = {line.split()[3] for line in stack.said if line.endswith("stopped (rc=0)")}
        assert ended == {"web.1", "worker.1", "pusher.1", "beat.1"}, stack.transcript()


@pytest.mark.parametrize("missing", ["DATABASE_URL", "REDIS_URL"])
def test_a_stack_without_servers_says_what_it_needs(missing: str) -> None:
    known = {"DATABASE_URL": "postgres://localhost/none", "REDIS_URL": "redis://localhost"}
    env = {**os.environ, **known, missing: ""}
    with Process("make", "--silent", "stack", env=env) as stack:
        assert stack.exit_code(LONG) != 0
        assert f"export {missing}=" in stack.transcript()


@contextmanager
def make_stack(env: dict[str, str], *options: str) -> Iterator[tuple[Process, str]]:
    """`make stack` with these options of honcho, all of it ready, and its URL."""
    port = free_port()
    env = {**env, "PORT": str(port), "ARGS": " ".join(options), "MAKEFLAGS": ""}
    with Process("make", "--silent", "stack", env=env) as stack:
        try:
            for process, ready in {
                "web": "startup complete",
                "worker": " ready.",
                "pusher": " ready.",
            }.items():
                eventually(
                    lambda: any(process in line and ready in line for line in stack.said),  # noqa: B023
                    LONG,
                )
            yield stack, f"http://127.0.0.1:{port}"
        except AssertionError as fault:
            raise AssertionError(stack.transcript()) from fault
        finally:  # whoever kills make leaves its processes behind
            stack.signal(signal.SIGTERM)
            stack.exit_code(LONG)


def echo(url: str) -> str:
    """What the demo agent answers to `echo hello`."""
    message = {
        "messageId": os.urandom(8).hex(),
        "role": "ROLE_USER",
        "parts": [{"text": "echo hello"}],
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}agents/demo/",
        json.dumps(call).encode(),
        {"Content-Type": "application/json", "A2A-Version": "1.0"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - as above
        answer: dict[str, Any] = json.load(response)
    return str(answer["result"]["task"]["artifacts"][0]["parts"][0]["text"])
