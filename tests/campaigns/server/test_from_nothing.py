"""The two ways to start a host, as a person starts them: `up` on SQLite, `stack` on real servers."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests import backend
from tests.campaigns.server.process import PATIENCE, Process

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds for a stack of three processes to come up, or to go.
LONG = 60.0


@pytest.mark.backend("sqlite")
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_up_serves_from_an_empty_folder_and_shows_the_password_only_the_first_time(
    tmp_path: Path, server: str
) -> None:
    env = {**backend.children(), "VAR_DIR": str(tmp_path / "var"), "SERVER": server, "PORT": "0"}
    for first in (True, False):
        with Process(sys.executable, "manage.py", "up", env=env) as host:
            url = host.line("  start", LONG).split()[-1]
            assert echo(url) == "hello"
            host.signal(signal.SIGTERM)
            assert host.exit_code() == 0, host.transcript()
            shown = [line for line in host.said if "with the password" in line]
            assert len(shown) == (1 if first else 0)


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_the_stack_answers_replaces_a_killed_worker_and_ends_together() -> None:
    env = {**backend.children(), "A2A_ANONYMOUS": "1"}
    with Process(sys.executable, "manage.py", "stack", "--port", "0", env=env) as stack:
        worker = int(stack.line("worker.1 | started as process", LONG).split()[-1])
        up = lines_with(stack, {"web.1": "Serving on", "worker.1": "ready.", "pusher.1": "ready."})
        url = up["web.1"].split()[-1]
        assert echo(url) == "hello"
        os.kill(worker, signal.SIGKILL)
        lines_with(stack, {"worker.1": "died with code -9"})
        lines_with(stack, {"worker.1": "ready."})
        assert echo(url) == "hello"
        stack.signal(signal.SIGINT)
        assert stack.exit_code(LONG) == 0, stack.transcript()
        ended = {line.split()[0] for line in stack.said if line.endswith("ended with code 0")}
        assert ended == {"web.1", "worker.1", "pusher.1", "beat"}


def lines_with(stack: Process, awaited: dict[str, str]) -> dict[str, str]:
    """By the names of processes: the next line of each that holds its text. They may come in any order."""
    found: dict[str, str] = {}
    while awaited.keys() - found:
        line = stack.line("", LONG)
        name = line.split()[0] if line else ""
        if name in awaited and name not in found and awaited[name] in line:
            found[name] = line
    return found


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
