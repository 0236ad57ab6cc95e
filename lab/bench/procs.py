"""Child processes: started in their own group, ready when they answer, always stopped; and what they cost (Linux)."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def say(text: str) -> None:
    """A progress line."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def free_port() -> int:
    """Return a free TCP port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Failed(RuntimeError):
    """A process of the run did not do what it was started for; the text holds its last words."""


class Child:
    """A process of this run, with its own process group and log file."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path, cwd: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Of the process itself, which is also its group's."""
        return self.process.pid

    def check(self) -> None:
        """Raise with the end of the log when the process is gone."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-1500:]
            raise Failed(
                f"process ended with {self.process.returncode}; the end of {self.log}:\n{tail}"
            )

    def stop(self) -> None:
        """SIGTERM to the group, ten seconds of patience, then SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def run(command: list[str], *, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
    """Run a short command to its end; raise with its output when it fails."""
    done = subprocess.run(
        command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout[-2000:]}")


def _stat(pid: int) -> tuple[str, list[str]]:
    """Name and the numbers after it in /proc/PID/stat."""
    head, _, rest = (PROC / str(pid) / "stat").read_text().rpartition(")")
    return head.partition("(")[2], rest.split()


def pids() -> Iterator[int]:
    """All processes of this machine."""
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def tree(roots: Iterable[int]) -> set[int]:
    """The roots and all their descendants."""
    kids: dict[int, list[int]] = {}
    for pid in pids():
        with contextlib.suppress(OSError):
            kids.setdefault(int(_stat(pid)[1][1]), []).append(pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += kids.get(pid, [])
    return found


def cpu_seconds(group: Iterable[int]) -> dict[int, float]:
    """User and system CPU of each process that still lives."""
    out = {}
    for pid in group:
        with contextlib.suppress(OSError):
            numbers = _stat(pid)[1]
            out[pid] = (int(numbers[11]) + int(numbers[12])) / TICK
    return out


def is_postgres(pid: int) -> bool:
    """False too when the database server is on another machine and the pid means nothing here."""
    try:
        return _stat(pid)[0].startswith("postgres")
    except OSError:
        return False


def memory_kib(group: Iterable[int]) -> int:
    """PSS: private memory, and each shared page divided by its users."""
    total = 0
    for pid in group:
        with contextlib.suppress(OSError):
            for row in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
                total += int(row.split()[1]) if row.startswith("Pss:") else 0
    return total


def threads(group: Iterable[int]) -> int:
    """OS threads of all processes together."""
    total = 0
    for pid in group:
        with contextlib.suppress(OSError):
            total += int(_stat(pid)[1][17])
    return total


def client_cpu() -> float:
    """CPU seconds of this process and the load generators it has waited for."""
    own, kids = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    return own.ru_utime + own.ru_stime + kids.ru_utime + kids.ru_stime
