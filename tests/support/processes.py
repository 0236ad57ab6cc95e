"""Child processes of the tests: started, waited for by a line of their log, and stopped with the log kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests import backend
from tests.support.procfile import worker_arguments

__all__ = ["Child", "celery_worker", "python"]


class Child:
    """A running process whose log is read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Start reading the log of the process."""
        self.process = process
        self._lines: deque[str] = deque(maxlen=500)
        self._more = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            with self._more:
                self._lines.append(line)
                self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    @property
    def log(self) -> str:
        """The last lines it wrote, to either stream."""
        return "".join(list(self._lines))

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Return when a line of the log holds the text; fail with the log when it ends or is late."""
        with self._more:
            self._more.wait_for(lambda: text in self.log or self._ended, seconds)
            if text not in self.log:
                raise AssertionError(
                    f"{self.process.args!r} did not say {text!r}. Its log:\n{self.log}"
                )

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 15) -> int:
        """Ask it to end (SIGTERM), kill it when it does not, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join(seconds)
        if self.process.stdout:
            self.process.stdout.close()
        return self.process.returncode


@contextmanager
def python(arguments: Sequence[str], environ: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Run `python ARGUMENTS` on this run's database, with these variables added, for as long as the block lasts."""
    child = Child(
        subprocess.Popen(  # noqa: S603 - our own command lines
            [sys.executable, *arguments],
            env={**backend.children(), **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )
    try:
        yield child
    finally:
        child.stop()


@contextmanager
def celery_worker(number: int = 1, environ: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Run a real worker, as `make stack` does, ready to take jobs, for as long as the block lasts."""
    with python(worker_arguments("worker", f"worker{number}"), environ) as child:
        child.wait_for(" ready.")
        yield child
