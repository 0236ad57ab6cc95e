"""A child process of a test: what it prints, line by line, and how it ends."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from tests import ROOT

__all__ = ["PATIENCE", "Process"]

if TYPE_CHECKING:
    from types import TracebackType

#: Seconds until a test gives up on a line or an exit. Generous: reached only when something is broken.
PATIENCE = 30.0


class Process:
    """Starts a command; `line()` waits for what it says. Killed at the end of the `with`, if it still runs."""

    def __init__(self, *command: str, env: dict[str, str] | None = None, cwd: Path = ROOT) -> None:
        self.popen = subprocess.Popen(  # noqa: S603 - commands of the tests
            command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.said: list[str] = []
        self.complaints: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._readers = [
            threading.Thread(
                target=self._read, args=(self.popen.stdout, self.said, self._lines), daemon=True
            ),
            threading.Thread(
                target=self._read, args=(self.popen.stderr, self.complaints, None), daemon=True
            ),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.popen.kill()
        self.popen.wait()
        for reader in self._readers:
            reader.join(PATIENCE)
        for stream in (self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()

    def line(self, start: str, patience: float = PATIENCE) -> str:
        """The next line of stdout that begins with `start`; AssertionError with all output when none comes."""
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"no line {start!r} within {patience} s\n{self.transcript()}"
                ) from None
            if line is None:
                raise AssertionError(f"ended without the line {start!r}\n{self.transcript()}")
            if line.startswith(start):
                return line

    def signal(self, signum: int) -> None:
        self.popen.send_signal(signum)

    def exit_code(self, patience: float = PATIENCE) -> int:
        """Wait for the end; all output has been read when this returns."""
        code = self.popen.wait(patience)
        for reader in self._readers:
            reader.join(patience)
        return code

    def transcript(self) -> str:
        return "\n".join(["--- stdout", *self.said, "--- stderr", *self.complaints])

    def _read(
        self, stream: IO[str] | None, lines: list[str], to: queue.Queue[str | None] | None
    ) -> None:
        for line in stream or ():
            lines.append(line.rstrip("\n"))
            if to is not None:
                to.put(line.rstrip("\n"))
        if to is not None:
            to.put(None)
