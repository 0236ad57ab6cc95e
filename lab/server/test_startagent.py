"""Agents of every kind that `startagent` writes answer in a host, without a change and without the internet."""

from __future__ import annotations

import signal
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from a2a_tasks.management.commands.startagent import KINDS
from lab.server.authors import START, make_environ, send
from tests.model_server import serving_model
from tests.support.printing_process import Process

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
        models = {"CHAT_URL": model.url, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model.url}
        env = make_environ(tmp_path, ",".join(["examples.demo", *names.values()]), **models)
        with Process(sys.executable, "manage.py", "up", env=env) as host:
            url = host.line("  start", START).split()[-1]
            for kind, name in names.items():
                task = send(f"{url}agents/{name.replace('_', '-')}", "hello")
                state = "INPUT_REQUIRED" if kind in ASKS else "COMPLETED"
                assert task["status"]["state"] == f"TASK_STATE_{state}", (kind, task)
            host.signal(signal.SIGTERM)
            host.exit_code()
