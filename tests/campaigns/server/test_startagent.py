"""Agents of every kind that `startagent` writes answer in a host, without a change and without the internet."""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.request
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from a2a_tasks.management.commands.startagent import KINDS
from tests import ROOT, backend
from tests.campaigns.server.process import PATIENCE, Process
from tests.model_server import serving_model

START = 60.0
#: The state after the first message, if it is not the end.
ASKS = {"form", "langgraph"}


@pytest.mark.backend("sqlite")
def test_agents_of_every_kind_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {kind: f"a_{kind.replace('-', '_')}" for kind in KINDS}
    for kind, name in names.items():
        call_command("startagent", name, "--kind", kind, stdout=StringIO())
    long = tmp_path / names["long-running"] / "agents.py"
    long.write_text(long.read_text().replace("PAUSE = 10", "PAUSE = 0.1"))
    with serving_model() as model:
        env = {
            **backend.children(),
            "A2A_APPS": ",".join(["examples.demo", *names.values()]),
            "A2A_GRPC_PORT": "",
            "CHAT_URL": model.url,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.url,
            "PORT": "0",
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "VAR_DIR": str(tmp_path / "var"),
        }
        with Process(sys.executable, "manage.py", "up", env=env) as host:
            url = host.line("  start", START).split()[-1]
            for kind, name in names.items():
                task = send(f"{url}agents/{name.replace('_', '-')}/")
                state = "INPUT_REQUIRED" if kind in ASKS else "COMPLETED"
                assert task["status"]["state"] == f"TASK_STATE_{state}", (kind, task)
            host.signal(signal.SIGTERM)
            host.exit_code()


def send(url: str) -> dict[str, Any]:
    """Send a message, and return the task when its agent has answered."""
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    body = json.dumps({"message": message}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}message:send", body, headers)  # noqa: S310 - our own host
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - the same
        task: dict[str, Any] = json.load(answer)["task"]
    return task
