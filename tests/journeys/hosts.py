"""Real processes of the host on this run's database: web processes, gRPC if asked for, and workers on the stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tests import backend
from tests.support.ports import free_port
from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments

__all__ = [
    "DOOMED",
    "QUICK",
    "RUNNING",
    "SHARED",
    "Host",
    "Web",
    "Workers",
    "embedded",
    "host",
    "pusher",
    "together",
    "web",
    "with_grpc",
    "worker",
]

#: The demo agents and those of the journeys, for callers without credentials, and browsers without TLS.
APPS = {
    "A2A_APPS": "examples.demo,examples.tables,tests.journeys.agents_app",
    "A2A_ANONYMOUS": "1",
    "SECURE_COOKIES": "0",
}
#: Short leases and frequent looks, for journeys that wait for a rescue or without hints; a slow machine has attempts enough.
QUICK = {
    "A2A_LEASE_SECONDS": "1.5",
    "A2A_BEAT_SECONDS": "0.4",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_MAX_ATTEMPTS": "9",
}
#: The host that stories share. Its leases last longer than a run of the tests: who died is found by the workers of the
#: stories that kill. Its looks are so rare that what happens at once was told by a hint; a hint may be lost, though, so no
#: story waits for ever. Who stopped saying that it is there is missed soon.
SHARED = {
    "A2A_LEASE_SECONDS": "10800",
    "A2A_BEAT_SECONDS": "3600",
    "A2A_POLL_SECONDS": "20",
    "A2A_MAX_ATTEMPTS": "9",
    "A2A_PRESENCE_SECONDS": "0.5",
    "A2A_WEBHOOK_ALLOW_HTTP": "1",
    "A2A_WEBHOOK_ALLOW_PRIVATE": "1",
    "A2A_FETCH_ALLOW_HTTP": "1",
    "A2A_FETCH_ALLOW_PRIVATE": "1",
}
#: The workers of the queue `doomed`: their leases are long enough for the heart of a busy machine.
DOOMED = {
    **SHARED,
    **QUICK,
    "A2A_LEASE_SECONDS": "4",
    "A2A_STOP_SECONDS": "3",
    "A2A_DRAIN_SECONDS": "1",
}
QUEUES = "agents,journeys"
#: Seconds that a process may take to start, when several do and the machine is busy.
STARTING = 120.0
#: The processes of the test that runs: their logs are shown with its failure.
RUNNING: dict[str, Child] = {}
T = TypeVar("T")


@dataclass(frozen=True)
class Web:
    """A web process, and where it answers."""

    process: Child
    url: str


@dataclass(frozen=True)
class Host:
    """A host of this backend: two web processes, a worker and what else was asked for, on SQLite one process that is all of it."""

    webs: list[Web]
    #: Port of gRPC, if that was asked for, and its process, if that is another one.
    grpc: int = 0
    grpc_process: Child | None = None

    @property
    def here(self) -> str:
        """The URL of the first web process."""
        return self.webs[0].url

    @property
    def there(self) -> str:
        """The URL of another web process, if there is one."""
        return self.webs[-1].url


def together(running: ExitStack, *contexts: AbstractContextManager[T]) -> list[T]:
    """Enter them all at once: to start a process is to wait for it."""
    with ThreadPoolExecutor(len(contexts)) as pool:
        return list(pool.map(running.enter_context, contexts))


@contextmanager
def _process(
    name: str, arguments: Sequence[str], environ: Mapping[str, str] | None, says: str
) -> Iterator[Child]:
    """A process that is ready once it `says` so. At the end it is killed: what it still does concerns no story."""
    with python(arguments, {**APPS, **(environ or {})}) as process:
        RUNNING[f"{name}, process {process.process.pid}"] = process
        try:
            process.wait_for(says, STARTING)
            yield process
        finally:
            process.kill()


@contextmanager
def web(environ: Mapping[str, str] | None = None) -> Iterator[Web]:
    """Serve on a free port, for as long as the block lasts."""
    arguments = ["-m", "django", "serve", "--port", "0"]
    with _process("web", arguments, environ, "Serving on ") as process:
        yield Web(process, _word_after("Serving on ", process))


def worker(
    number: int = 1, environ: Mapping[str, str] | None = None, queues: str = QUEUES
) -> AbstractContextManager[Child]:
    """Run a worker as `make stack` does, of these queues."""
    arguments = [*worker_arguments("worker", f"journey{number}"), "-Q", queues]
    return _process(f"worker {number}", arguments, environ, " ready.")


def pusher(
    number: int = 1, environ: Mapping[str, str] | None = None
) -> AbstractContextManager[Child]:
    """Run a worker that sends webhooks, as `make stack` does."""
    arguments = worker_arguments("pusher", f"pusher{number}")
    return _process(f"pusher {number}", arguments, environ, " ready.")


@contextmanager
def embedded(environ: Mapping[str, str]) -> Iterator[Web]:
    """Run a host that is one process, as `make run` does: with gRPC if it has a port."""
    arguments = ["-m", "django", "up", "--port", "0"]
    with _process("the host", arguments, environ, "  start     ") as process:
        yield Web(process, _word_after("  start     ", process))


def _word_after(beginning: str, process: Child) -> str:
    """The URL in the line that begins so."""
    line = next(line for line in process.log.splitlines() if line.startswith(beginning))
    return line.removeprefix(beginning).split()[0].rstrip("/")


def with_grpc(port: int) -> dict[str, str]:
    """The settings of a host that serves gRPC at a port and names it in its cards."""
    return {"A2A_GRPC_PORT": str(port), "A2A_GRPC_URL": f"http://127.0.0.1:{port}"}


@contextmanager
def host(
    environ: Mapping[str, str] | None = None,
    *,
    grpc: bool = False,
    push: bool = False,
    of_some: Mapping[str, str] | None = None,
) -> Iterator[Host]:
    """Run a host of this backend; `grpc` and `push`: on the stack in processes of their own, else in the one there is.

    `of_some` are other settings of the pusher and of the second web process.
    """
    port = free_port() if grpc else 0
    given = {**(with_grpc(port) if grpc else {}), **(environ or {})}
    with ExitStack() as running:
        if backend.backend() == backend.STACK:
            webs = [web({**given, **more}) for more in ({}, of_some or {})]
            others = [worker(environ=given)]
            if push:
                others.append(pusher(environ={**given, **(of_some or {})}))
            if grpc:
                serve = ["-m", "django", "serve_grpc"]
                others.append(_process("gRPC", serve, given, "Serving gRPC on "))
            processes = together(running, *others)
            yield Host(together(running, *webs), port, processes[-1] if grpc else None)
        else:
            begun = (embedded if grpc else web)(given)
            yield Host([running.enter_context(begun)], port)


class Workers:
    """The workers of the queue `doomed`, which stories may kill: each begins with those it asks for."""

    def __init__(self, running: ExitStack, environ: Mapping[str, str]) -> None:
        self._running, self._environ = running, {**DOOMED, **environ}
        self._begun: list[Child] = []

    def exactly(self, count: int) -> list[Child]:
        """So many: those that live, and new ones."""
        alive = [child for child in self._begun if child.process.poll() is None]
        for surplus in alive[count:]:
            surplus.kill()
        numbers = range(len(self._begun), len(self._begun) + count - len(alive))
        new = [worker(2 + n, self._environ, queues="doomed") for n in numbers]
        self._begun += (begun := together(self._running, *new) if new else [])
        return [*alive[:count], *begun]
