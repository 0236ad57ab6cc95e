"""The host's processes in the lab: started as an operator starts them, watched, and started again when they die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.end_with_parent import end_with_parent

__all__ = ["Process", "beat", "pusher", "web", "worker"]

#: Seconds a process has to become ready.
PATIENCE = 180.0
#: Seconds before a dead process is started again, as a supervisor does.
PAUSE = 0.3

Tell = Callable[..., None]


@dataclass
class Process:
    """One process: web, worker, pusher or beat. `tell` is given what happens to it."""

    name: str
    arguments: Sequence[str]
    environ: Mapping[str, str]
    directory: Path
    logs: Path
    #: The text of its log that says it is ready.
    ready_when: str
    tell: Tell = lambda **_: None
    #: Start it again when it dies?
    supervised: bool = True
    popen: subprocess.Popen[bytes] | None = None
    starts: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)
    _ready: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """The process's id; of the last one, if it is being started again."""
        assert self.popen is not None
        return self.popen.pid

    def start(self) -> None:
        """Start it, and keep it running until `stop`."""
        self._spawn()
        self._watcher = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._watcher.start()

    def _spawn(self) -> None:
        self.starts += 1
        self._ready.clear()
        self.log = self.logs / f"{self.name}.{self.starts}.log"
        with self.log.open("wb") as out:
            self.popen = subprocess.Popen(
                [sys.executable, *self.arguments],
                cwd=self.directory,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self.tell(what="process", name=self.name, pid=self.popen.pid, event="started", code=None)
        threading.Thread(target=self._become_ready, args=(self.popen,), daemon=True).start()

    def _become_ready(self, popen: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE
        log = self.log
        while popen.poll() is None and time.monotonic() < deadline:
            if self.ready_when.encode() in log.read_bytes():
                self.tell(what="process", name=self.name, pid=popen.pid, event="ready", code=None)
                self._ready.set()
                return
            time.sleep(0.05)

    def _watch(self) -> None:
        while True:
            assert self.popen is not None
            code = self.popen.wait()
            self._ready.clear()
            self.tell(what="process", name=self.name, pid=self.popen.pid, event="died", code=code)
            if self._ending.is_set() or not self.supervised or self._ending.wait(PAUSE):
                return
            self._spawn()

    def wait_ready(self, seconds: float = PATIENCE) -> None:
        """Return when it is ready. Raises AssertionError with its log."""
        if not self._ready.wait(seconds):
            raise AssertionError(
                f"{self.name} did not become ready:\n{self.log.read_text()[-4000:]}"
            )

    def signal(self, signum: int) -> int:
        """Send it a signal; returns the process's id."""
        pid = self.pid
        os.kill(pid, signum)
        return pid

    def kill(self) -> int:
        """End it as a power cut would; it is started again if it is supervised."""
        return self.signal(signal.SIGKILL)

    def stop(self, seconds: float = 12.0) -> None:
        """End it for good."""
        self._ending.set()
        if self.popen is None:
            return
        for signum, patience in (
            (signal.SIGCONT, 0.0),
            (signal.SIGTERM, seconds),
            (signal.SIGKILL, 5.0),
        ):
            if self.popen.poll() is None:
                os.kill(self.pid, signum)
                self._gone(patience)
        if self._watcher:
            self._watcher.join(10)

    def stop_at_once(self) -> None:
        """End it for good, as a power cut would."""
        self._ending.set()
        if self.popen is not None and self.popen.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        if self._watcher:
            self._watcher.join(10)

    def resume(self) -> None:
        """Start it again after `stop`."""
        self._ending.clear()
        self.start()

    def _gone(self, seconds: float) -> None:
        assert self.popen is not None
        deadline = time.monotonic() + seconds
        while self.popen.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)


def web(name: str, port: int, **common: Any) -> Process:
    """A web process on that port."""
    arguments = ["-m", "django", "serve", "--port", str(port)]
    return Process(name=name, arguments=arguments, ready_when="Serving on ", **common)


def worker(name: str, queues: str = "agents", **common: Any) -> Process:
    """A Celery worker, with the stack's options."""
    options = ["-P", "threads", "-c", "4", "--without-gossip", "--without-mingle"]
    arguments = ["-m", "celery", "-A", "a2a_project", "worker", *options, "-Q", queues]
    arguments += ["-l", "INFO", "-n", f"{name}@%h"]
    return Process(name=name, arguments=arguments, ready_when="worker started, queues:", **common)


def pusher(name: str, **common: Any) -> Process:
    """A Celery worker that sends webhooks and does nothing else."""
    return worker(name, "webhooks", **common)


def beat(name: str, schedule: Path, **common: Any) -> Process:
    """The one beat."""
    arguments = [
        "-m",
        "celery",
        "-A",
        "a2a_project",
        "beat",
        "-l",
        "INFO",
        "--schedule",
        str(schedule),
    ]
    arguments += ["--pidfile", ""]
    return Process(name=name, arguments=arguments, ready_when="beat: Starting", **common)
