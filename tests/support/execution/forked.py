"""Processes of agents that are forked from one that has set up Django already: to do so takes two seconds of processor.

Python's own fork server makes them (`multiprocessing`). It has the environment of its first process, so a process for
another environment is started as in production, and so are those of tests about the start itself.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
from multiprocessing import process
from multiprocessing.connection import Connection

from a2a_tasks.execution import processes
from a2a_tasks.execution.child import main

__all__ = ["keep_environment", "start_or_fork"]

_start = processes._popen
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.support.execution.set_up"])
#: The environment of the fork server.
_environ: dict[str, str] = {}


class ForkedProcess:
    """What the host uses of `subprocess.Popen`."""

    def __init__(self, descriptor: int) -> None:
        """Fork a process that has a copy of the descriptor, and leads a group of its own."""
        leads, told = _context.Pipe(duplex=False)
        with leads, socket.socket(fileno=os.dup(descriptor)) as pipe:
            with told:
                self._process = _context.Process(target=_serve, args=(pipe, told))
                self._process.start()
            leads.recv()  # who kills it kills its group
        # `multiprocessing` would look for its end too, and one of the two would not see the exit code.
        process._children.discard(self._process)  # type: ignore[attr-defined]
        self.pid = self._process.pid
        self.returncode: int | None = None

    def wait(self) -> int | None:
        """Wait for its end; its exit code, or a signal as a negative number."""
        self._process.join()
        self.returncode = self._process.exitcode
        return self.returncode


def keep_environment() -> None:
    """Let processes with the present environment be forked, unless another one was kept: before a test changes it."""
    if not _environ:
        _environ.update(_read_environment())


def start_or_fork(descriptor: int) -> subprocess.Popen[bytes] | ForkedProcess:
    """Stand in for `processes._popen`."""
    is_kept = _environ == _read_environment()
    return ForkedProcess(descriptor) if is_kept else _start(descriptor)


def _read_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


def _serve(pipe: socket.socket, told: Connection) -> None:
    os.setsid()
    with told:
        told.send(None)
    main(pipe.detach(), os.getppid())
