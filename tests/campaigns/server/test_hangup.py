"""SIGHUP at a supervisor with a terminal: new processes if somebody asks, the end if the terminal was closed."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests import ROOT
from tests.campaigns.server.process import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.backend("sqlite")  # no database at all: once is enough

SUPERVISOR = """
import asyncio, contextlib, sys
from a2a_tasks.management.supervisor import Program, Supervisor
code = '''
import os, signal, sys
signal.signal(15, lambda *_: (open(sys.argv[1], "a").write("ended "), sys.exit(0)))
os.write(int(os.environ["READY_FD"]), b"ready")
print("up", flush=True)
signal.pause()
'''
def say(line):
    with contextlib.suppress(OSError):
        print(line, flush=True)
supervisor = Supervisor({}, ".", 10, say)
asyncio.run(supervisor.run([Program("web", (sys.executable, "-c", code, sys.argv[1]))]))
"""


@contextmanager
def at_a_terminal(traces: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A supervisor whose session has a terminal of its own, and the terminal's other end."""
    ours, theirs = pty.openpty()

    def take_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    supervisor = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-c", SUPERVISOR, str(traces)],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=take_the_terminal,
    )
    os.close(theirs)
    try:
        yield supervisor, ours
    finally:
        supervisor.kill()
        supervisor.wait()


def heard(terminal: int, text: bytes) -> None:
    """Read the terminal until it shows the text; OSError when it ends before."""
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 4096)


def test_a_terminal_that_is_closed_ends_the_stack_in_order(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    with at_a_terminal(traces) as (supervisor, terminal):
        heard(terminal, b"web      | up")
        os.close(terminal)
        assert supervisor.wait(PATIENCE) == 0
    assert traces.read_text() == "ended "


def test_asked_at_a_terminal_it_rolls(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path / "traces") as (supervisor, terminal):
        heard(terminal, b"web      | up")
        supervisor.send_signal(signal.SIGHUP)
        heard(terminal, b"all processes were replaced")
        supervisor.send_signal(signal.SIGTERM)
        assert supervisor.wait(PATIENCE) == 0
        os.close(terminal)
