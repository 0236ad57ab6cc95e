"""A private server: one process of somebody else's program in a temporary directory, on a port of its own.

Directory and process go with this process, however it ends: a shell waits at the end of a pipe for that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.ports import free_port

__all__ = ["NotReady", "PrivateServer", "eventually"]

#: What outlives us: reads until we are gone, then ends the server and removes its directory. $1 is the directory.
CARETAKER = """
cat >/dev/null
pid=$(cat "$1/server.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null && sleep 1 && kill -KILL "$pid" 2>/dev/null
umount -l "$1" 2>/dev/null
rm -rf "$1"
"""


class NotReady(Exception):
    """A server did not become what was waited for; the text says what, and ends with its log."""


def eventually(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Look every 20 ms until the condition holds; raises NotReady with `what` after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise NotReady(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class PrivateServer:
    """A directory, a port, and at most one process; a context manager."""

    host = "127.0.0.1"

    def __init__(self, name: str) -> None:
        """Make the directory and choose the port. Nothing runs yet."""
        self.directory = Path(tempfile.mkdtemp(prefix=f"faultlab-{name}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._caretaker = subprocess.Popen(
            ["/bin/sh", "-c", CARETAKER, "caretaker", str(self.directory)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us; it works when we are gone
        )

    def __enter__(self) -> Self:
        """Start the server."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing behind."""
        self.close()

    def start(self) -> None:
        """Start the server; returns when it answers."""
        raise NotImplementedError

    def stop(self) -> None:
        """Have the server end in good order, and wait for it."""
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        """The process's id; None while none runs."""
        return self.process.pid if self.process and self.process.poll() is None else None

    @property
    def log(self) -> str:
        """The end of what the server said."""
        path = self.directory / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def spawn(self, command: Sequence[str], user: int | None = None) -> None:
        """Start the process, its output going to `log`; `user` is who it runs as, if not we."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                user=user,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        (self.directory / "server.pid").write_text(str(self.process.pid))

    def await_answer(self, answers: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until it answers. Raises NotReady with its log when it ends or is late."""
        try:
            eventually(lambda: self.pid is None or answers(), seconds, "no answer")
        except NotReady as late:
            raise NotReady(f"{late}\n{self.log}") from None
        if self.pid is None:
            raise NotReady(f"the server ended\n{self.log}")

    def signal(self, number: int) -> None:
        """Send the process a signal, if it runs."""
        if self.process is not None and self.pid is not None:
            self.process.send_signal(number)

    def wait(self, seconds: float = 30) -> None:
        """Wait for the process to end. Raises NotReady."""
        if self.process is None:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotReady(f"it did not end within {seconds} s\n{self.log}") from None
        (self.directory / "server.pid").unlink(missing_ok=True)

    def close(self) -> None:
        """End the process and remove the directory. Safe to call again."""
        if self.process is not None and self.pid is not None:
            self.process.kill()
        self.wait()
        if self._caretaker.stdin is not None:
            self._caretaker.stdin.close()
        self._caretaker.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
