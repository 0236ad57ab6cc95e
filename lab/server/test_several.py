"""Other ways to run the ASGI application: gunicorn with several processes, and daphne as it comes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.server.test_ending import refused
from lab.server.test_from_nothing import LONG, echo
from tests import ROOT, backend
from tests.support.execution.waiting import eventually
from tests.support.ports import free_port
from tests.support.printing_process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.backend("stack"),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("emptied"),
]
APPLICATION = "a2a_project.asgi:application"
ENVIRON = {"A2A_ANONYMOUS": "1", "A2A_RUNS": "local", "LOG_LEVEL": "WARNING"}


@pytest.fixture
def served() -> Iterator[tuple[Process, str]]:
    """Two processes of gunicorn that serve, and their URL."""
    env = {**backend.children(), **ENVIRON, "PORT": str(free_port()), "WEB_CONCURRENCY": "2"}
    command = ["-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", APPLICATION]
    with Process(sys.executable, *command, env=env) as gunicorn:
        eventually(lambda: len(started(gunicorn)) == 2, LONG)
        yield gunicorn, f"http://127.0.0.1:{env['PORT']}/"
        gunicorn.signal(signal.SIGTERM)
        gunicorn.exit_code(LONG)


def started(gunicorn: Process) -> list[int]:
    """The processes that have started so far, oldest first."""
    lines = "\n".join(gunicorn.complaints)
    ready = len(re.findall("Application startup complete", lines))
    return [int(pid) for pid in re.findall(r"Booting worker with pid: (\d+)", lines)][:ready]


def test_several_processes_share_a_port_and_end_together(served: tuple[Process, str]) -> None:
    gunicorn, url = served
    assert {echo(url) for _ in range(20)} == {"hello"}
    gunicorn.signal(signal.SIGTERM)
    assert gunicorn.exit_code(LONG) == 0, gunicorn.transcript()


def test_one_that_dies_is_replaced(served: tuple[Process, str]) -> None:
    gunicorn, url = served
    os.kill(started(gunicorn)[0], signal.SIGKILL)
    eventually(lambda: len(started(gunicorn)) == 3, LONG)
    assert echo(url) == "hello"


def test_one_that_dies_is_replaced_and_all_end_while_nobody_reads_the_log() -> None:
    port, (near, far) = free_port(), os.pipe()
    env = {**backend.children(), **ENVIRON, "PORT": str(port), "WEB_CONCURRENCY": "1"}
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", APPLICATION]
    master = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=ROOT, env=env, stdout=far, stderr=far
    )
    try:
        eventually(lambda: not refused(port) and echo(f"http://127.0.0.1:{port}/") == "hello", LONG)
        fill(far)
        (first,) = children(master.pid)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: children(master.pid) not in ([], [first]), LONG)
        assert echo(f"http://127.0.0.1:{port}/") == "hello"
        master.send_signal(signal.SIGTERM)
        assert master.wait(LONG) == 0
    finally:
        master.kill()
        os.close(near)
        os.close(far)


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def fill(pipe: int) -> None:
    """Write until the pipe takes no more, by a description of its own: its other writers still wait."""
    writer = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * size)
    os.close(writer)


def test_they_end_when_the_master_was_killed(served: tuple[Process, str]) -> None:
    gunicorn, url = served
    gunicorn.signal(signal.SIGKILL)
    eventually(lambda: refused(int(url.split(":")[-1].strip("/"))), LONG)


def test_a_port_of_grpc_that_is_taken_ends_the_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"PORT": str(free_port()), "A2A_GRPC_PORT": str(port)}
        command = ["-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", APPLICATION]
        env = {**backend.children(), **ENVIRON, **ports}
        with Process(sys.executable, *command, env=env) as gunicorn:
            assert gunicorn.exit_code(LONG) == 1
            assert f"Connection in use: ('127.0.0.1', {port})" in gunicorn.transcript()


def test_daphne_serves_the_application_as_it_comes() -> None:
    port = free_port()
    env = {**backend.children(), **ENVIRON}
    command = ["-m", "daphne", "-p", str(port), APPLICATION]
    with Process(sys.executable, *command, env=env) as daphne:
        eventually(lambda: not refused(port), LONG)
        assert echo(f"http://127.0.0.1:{port}/") == "hello"
        daphne.signal(signal.SIGTERM)
        daphne.exit_code(LONG)
