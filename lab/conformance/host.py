"""The host under test, one process on SQLite; `python -m lab.conformance.host --httpPort N --grpcPort M` is the ITK's agent `current`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import httpx

from tests import ROOT
from tests.support.end_with_parent import end_with_parent
from tests.support.ports import free_ports

__all__ = ["DATABASE", "FOLDER", "begin", "command", "environ", "kill_group", "serving"]

#: Where kits, their environments and logs are.
FOLDER = ROOT / "var" / "conformance"
#: The folder of the database; a host that a kit begins is told.
DATABASE = Path(os.environ.get("CONFORMANCE_DATABASE", FOLDER / f"host-{os.getpid()}"))
#: Seconds that a host may take to answer.
PATIENCE = 120
#: What kits need besides: errors of 1.0.0, webhooks to this machine, gRPC in cards.
SETTINGS = {
    "A2A_APPS": "examples.demo,examples.kits,lab.conformance.host_app",
    "A2A_ANONYMOUS": "1",
    "A2A_DOORS": "catalog",
    "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    "A2A_WEBHOOK_ALLOW_HTTP": "1",
    "A2A_V10_ERROR_TABLE": "1.0.0",
}
command = [sys.executable, "manage.py", "up"]


def environ(agent: str, port: int, grpc_port: int) -> dict[str, str]:
    """Return the variables of a host whose default agent is this. All hosts of a run follow each other on one database."""
    ours = ("A2A_", "DATABASE_", "REDIS_", "CELERY_", "DJANGO_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    there = {"HOST": "127.0.0.1", "PORT": str(port), "VAR_DIR": str(DATABASE)}
    grpc = {"A2A_GRPC_PORT": str(grpc_port), "A2A_GRPC_URL": f"http://127.0.0.1:{grpc_port}"}
    return {**kept, **there, **grpc, **SETTINGS, "A2A_DEFAULT_AGENT": agent}


@contextmanager
def serving(agent: str) -> Iterator[str]:
    """Serve for as long as the block lasts; the address. Raises TimeoutError with the last lines of the log."""
    port, grpc_port = free_ports(2)
    FOLDER.mkdir(parents=True, exist_ok=True)
    place, log = f"http://127.0.0.1:{port}", FOLDER / f"host-{agent}.log"
    with log.open("wb") as said:
        process = begin(command, ROOT, environ(agent, port, grpc_port), said)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(place):
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"the host does not answer: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield place
    finally:
        kill_group(process)


def begin(
    words: list[str], folder: Path, variables: dict[str, str], said: BinaryIO
) -> subprocess.Popen[bytes]:
    """Begin a process that leads a group, and ends when the board does."""
    return subprocess.Popen(
        words,
        cwd=folder,
        env=variables,
        stdout=said,
        stderr=said,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )


def _answers(place: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{place}/healthz").is_success
    return False


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its group, and all that it began."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    _, _, http_port, _, grpc = sys.argv
    os.chdir(ROOT)
    os.execve(sys.executable, command, environ("itk", int(http_port), int(grpc)))
