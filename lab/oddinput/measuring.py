"""What a request costs the server's process, and what others notice of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lab.oddinput.doors import PLAIN, Odd

__all__ = ["Cost", "Measured", "Probe", "ask", "find_faults", "measure", "tell"]

#: Seconds of CPU that any request may cost.
ENOUGH = 0.1
#: Seconds of CPU for which no thread may hold the interpreter at a stretch. The aim is 50 ms; where others use the
#: same core and its caches, the same work counts half as much again.
HELD = 0.075
#: Statuses that are errors of the server.
BROKEN = ("HTTP/1.1 5", "INTERNAL", "UNKNOWN", "UNAVAILABLE")
#: How many times the CPU of as many plain letters an odd request may cost.
TIMES = 8
#: Seconds to wait for an answer, and for more of it: some inputs are half a request, and some keep the connection.
PATIENCE, REST = 4.0, 0.3


@dataclass(frozen=True)
class Cost:
    """What one input cost."""

    odd: Odd
    #: Seconds of CPU of the process, of this input and of plain letters.
    cpu: float
    plain: float
    #: Seconds of CPU for which the interpreter was held at most.
    held: float
    #: Seconds that the slowest answer to others took meanwhile.
    worst: float
    #: The first line of the answer.
    status: str


@dataclass(frozen=True)
class Measured:
    """A process that is measured: its id, and the directory of those that watch themselves."""

    pid: int
    holds: Path

    def find_watcher(self) -> int:
        """Return the id of the thread that watches."""
        return int((self.holds / str(self.pid)).read_text().split()[0])

    def count_cpu(self) -> float:
        """Return the seconds that the threads of the process have run, but the one that watches."""
        spent, watcher = 0, self.find_watcher()
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                spent += int((task / "schedstat").read_text().split()[0]) * (
                    int(task.name) != watcher
                )
        return spent / 1e9

    def find_longest(self, since: float) -> float:
        """Return for how many seconds of CPU the interpreter was held at most since a moment; 0 = never for long."""
        lines = (self.holds / str(self.pid)).read_text().splitlines()[1:]
        holds = [tuple(map(float, line.split())) for line in lines if line.count(" ") == 1]
        return max((held for moment, held in holds if moment >= since), default=0.0)


def ask(url: str, request: bytes) -> str:
    """Send a request; return the first line of the answer, empty if there was none."""
    parts = urlsplit(url)
    answer = b""
    with socket.create_connection((parts.hostname or "", parts.port or 80), PATIENCE) as peer:
        with suppress(ConnectionError):  # refused before its end
            peer.sendall(request)
        with suppress(ConnectionError, TimeoutError):
            while piece := peer.recv(1 << 16):
                answer = answer or piece
                peer.settimeout(REST)
    return answer.split(b"\r\n", 1)[0].decode("latin-1")


class Probe:
    """Asks `/healthz` all the time, on a thread of its own."""

    def __init__(self, url: str) -> None:
        self._url, self._worst, self._stop = url, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def take(self) -> float:
        """Return the seconds of the slowest answer since the last call."""
        worst, self._worst = self._worst, 0.0
        return worst

    def _run(self) -> None:
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        while not self._stop.wait(0.005):
            begun = time.monotonic()
            with suppress(OSError):
                ask(self._url, request)
            self._worst = max(self._worst, time.monotonic() - begun)


def measure(
    measured: Measured, odds: Iterable[Odd], send: Callable[[Odd], str], url: str
) -> list[Cost]:
    """Send each input once, and each that looks dear twice more: the least counts. `url`: who else is asked meanwhile."""
    costs: list[Cost] = []
    plain = 0.0
    for odd in odds:
        spent, held, worst, status = _once(measured, odd, send, url)
        if spent > ENOUGH or held > HELD:
            again = [_once(measured, odd, send, url) for _ in range(2)]
            spent, held = (
                min(spent, *(one[0] for one in again)),
                min(held, *(one[1] for one in again)),
            )
        if odd.kind == PLAIN:
            plain = spent
        costs.append(Cost(odd, spent, plain, held, worst, status))
    return costs


def _once(
    measured: Measured, odd: Odd, send: Callable[[Odd], str], url: str
) -> tuple[float, float, float, str]:
    with Probe(url) as probe:
        before, begun = measured.count_cpu(), time.time()
        status = send(odd)
        return measured.count_cpu() - before, measured.find_longest(begun), probe.take(), status


def find_faults(costs: Iterable[Cost]) -> list[Cost]:
    """Return the inputs that cost more than they may, and those whose answer is an error of the server."""
    return [
        cost
        for cost in costs
        if cost.cpu > max(ENOUGH, TIMES * cost.plain)
        or cost.held > HELD
        or cost.status.startswith(BROKEN)
    ]


def tell(cost: Cost) -> str:
    """Describe a cost."""
    return (
        f"{cost.odd.door}: {cost.odd.kind!r}, {len(cost.odd.request)} bytes: {cost.cpu:.3f} s of CPU "
        f"({cost.plain:.3f} s for plain letters), held for {cost.held:.3f} s, others waited {cost.worst:.3f} s, {cost.status}"
    )
