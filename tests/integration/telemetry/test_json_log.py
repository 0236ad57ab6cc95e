"""A2A_LOG_FORMAT=json: each process of the host writes nothing but JSON, and the lines of a run say whose they are."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, TextIO

import httpx
import pytest

from tests import backend
from tests.journeys.hosts import RUNNING, together, web, worker
from tests.support.collector import collector
from tests.support.execution.waiting import eventually as wait_for
from tests.support.ports import free_port
from tests.support.procfile import worker_arguments

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]
CANARY = "canary0123456789"
ENVIRON = {
    "A2A_LOG_FORMAT": "json",
    "A2A_APPS": "tests.integration.telemetry.talking_agents",
    "A2A_DEFAULT_AGENT": "talker",
    "A2A_ANONYMOUS": "1",
    "A2A_GRPC_PORT": "",
}


#: The arguments of Python that start a process, and what it says when it has started.
COMMANDS = {
    "up": (["-m", "django", "up"], "The host is up"),
    "grpc": (["-m", "django", "serve_grpc", "--port", "0"], "Serving gRPC on "),
    "web": (
        ["-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "a2a_project.asgi:application"],
        "Application startup complete",
    ),
    "worker": (worker_arguments("worker", "json"), " ready."),
    "environment": (["-m", "a2a_host.worker"], " ready."),
    "pusher": (worker_arguments("pusher", "json"), " ready."),
    "beat": (
        ["-m", "celery", "-A", "a2a_project", "beat", "-l", "INFO", "-s", "{}/beat"],
        "beat: Starting",
    ),
}
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "a2a_host.worker_settings",
    "A2A_ENVIRONMENT": "talking",
    "A2A_DEFAULT_AGENT": "demo",
}
#: `make test` starts what `test_lines_of_a_run_name_it_and_its_span_and_hold_no_secret` does not.
PROCESSES = [
    "up",
    *(pytest.param(name, marks=pytest.mark.backend("stack")) for name in ("web", "environment")),
    *(
        pytest.param(name, marks=[pytest.mark.backend("stack"), pytest.mark.thorough])
        for name in ("grpc", "worker", "pusher", "beat")
    ),
]


def entries(log: str) -> list[dict[str, Any]]:
    """The lines of a log as objects."""
    return [json.loads(line) for line in log.splitlines() if not line.startswith("Serving on ")]


def test_lines_of_a_run_name_it_and_its_span_and_hold_no_secret() -> None:
    before = set(RUNNING)
    with ExitStack() as running:
        traces = running.enter_context(collector())
        environ = {**ENVIRON, **traces.environ}
        processes: list[AbstractContextManager[Any]] = [web(environ)]
        if backend.backend() == backend.STACK:
            processes.append(worker(environ=environ, queues="agents"))
        url = together(running, *processes)[0].url
        tasks = {
            agent: fail(f"{url}/agents/{agent}/message:send") for agent in ("talker", "hermit")
        }
        attempts = {agent: traces.wait_named(f"invoke_agent {agent}")[0] for agent in tasks}
        children = [RUNNING[name] for name in RUNNING.keys() - before]
        for child in children:
            child.stop()
    log = "".join(child.log for child in children)
    assert CANARY not in log

    for agent, task in tasks.items():
        lines = [line for line in entries(log) if line.get("task") == task]
        said, printed = (find(lines, logger=name) for name in ("tests.talker", "stdout"))
        failed = find(lines, logger="a2a_tasks.execution.runner")
        for line in (said, printed, failed):
            whose = [line[name] for name in ("request_id", "agent", "run", "attempt", "tenant")]
            assert whose == ["request-7", agent, said["run"], 1, "/acme"]
            span = attempts[agent]
            assert (line["trace_id"], line["span_id"]) == (span.trace, span.id)
        assert said["message"] == "I was told password=[redacted]\nand more"
        assert (said["level"], said["extra"]) == ("INFO", {"order": 7, "api_key": "[redacted]"})
        assert (printed["level"], printed["message"]) == ("INFO", "printed")
        assert "ValueError: token=[redacted]" in failed["exception"]


def fail(url: str) -> str:
    """Send the secret to an agent, which fails; returns the id of the task."""
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": CANARY}]}
    body = {"message": message, "tenant": "acme"}
    headers = {"A2A-Version": "1.0", "X-Request-ID": "request-7"}
    task = httpx.post(url, json=body, headers=headers, timeout=60).json()["task"]
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    return str(task["id"])


def find(lines: list[dict[str, Any]], logger: str) -> dict[str, Any]:
    """The only line of this logger."""
    (found,) = [line for line in lines if line["logger"] == logger]
    return found


@pytest.mark.parametrize("name", PROCESSES)
def test_each_process_logs_nothing_but_json_from_start_to_end(name: str, tmp_path: Path) -> None:
    """People read the standard output of `up` and `serve_grpc`."""
    arguments, ready = COMMANDS[name]
    port = free_port()
    own = ENVIRONMENT if name == "environment" else {}
    variables = {
        **ENVIRON,
        **own,
        "PORT": str(port),
        "A2A_DRAIN_SECONDS": "1",
        "HOME": str(tmp_path),
    }
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(  # noqa: S603 - our own command lines
            [sys.executable, *(word.format(tmp_path) for word in arguments)],
            env={**backend.children(), **variables},
            stdout=out,
            stderr=err,
        )
        try:
            wait_for(lambda: ready in read(out) + read(err) or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
            process.wait()
    lines = entries(read(err))
    assert ready in read(out) + read(err)
    assert {tuple(line)[:4] for line in lines} <= {("ts", "level", "logger", "message")}
    assert name in {"up", "grpc"} or read(out) == ""


def read(file: TextIO) -> str:
    """What a process has written to a file so far."""
    return Path(file.name).read_text(encoding="utf-8")
