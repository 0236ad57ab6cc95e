"""Real processes of the host on this run's database: web processes, gRPC if asked for, and workers on the stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from a2a_tasks.management.commands import stack
from tests import backend
from tests.ports import free_port
from tests.processes import Child, python

__all__ = [
    "QUICK",
    "RUNNING",
    "Host",
    "Web",
    "embedded",
    "host",
    "pusher",
    "web",
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
QUEUES = "agents,journeys"
_SAYS = "Serving on "
#: The processes of the test that runs: their logs are shown with its failure.
RUNNING: dict[str, Child] = {}


@dataclass(frozen=True)
class Web:
    """A web process, and where it answers."""

    process: Child
    url: str


@dataclass(frozen=True)
class Host:
    """A host of this backend: two web processes and a worker on the stack, on SQLite one process that is all of it."""

    webs: list[Web]
    #: Port of gRPC, if that was asked for, and its process, if it has one of its own.
    grpc: int = 0
    rpc: Child | None = None

    @property
    def here(self) -> str:
        """The URL of the first web process."""
        return self.webs[0].url

    @property
    def there(self) -> str:
        """The URL of another web process, if there is one."""
        return self.webs[-1].url


@contextmanager
def web(environ: Mapping[str, str] | None = None, *, server: str = "daphne") -> Iterator[Web]:
    """Serve on a free port, for as long as the block lasts."""
    arguments = ["-m", "django", "serve", "--port", "0", "--server", server]
    with python(arguments, {**APPS, **(environ or {})}) as process:
        RUNNING[f"web process {process.process.pid}"] = process
        process.wait_for(_SAYS)
        line = next(line for line in process.log.splitlines() if line.startswith(_SAYS))
        yield Web(process, line.removeprefix(_SAYS).rstrip("/"))


@contextmanager
def worker(number: int = 1, environ: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Run a worker as `manage.py stack` does, also for the queue of the journeys' agents."""
    _, *arguments = stack.workers(number)[-1].command
    arguments[arguments.index("-A") + 1] = "a2a_project"
    arguments[arguments.index("-Q") + 1] = QUEUES
    arguments[arguments.index("-n") + 1] = f"journey{number}@%h"
    with python(arguments, {**APPS, **(environ or {})}) as process:
        RUNNING[f"worker {number}"] = process
        process.wait_for(" ready.")
        yield process


@contextmanager
def pusher(number: int = 1, environ: Mapping[str, str] | None = None) -> Iterator[Child]:
    """Run a worker that sends webhooks, as `manage.py stack` does."""
    _, *arguments = stack.pushers(number)[-1].command
    arguments[arguments.index("-A") + 1] = "a2a_project"
    with python(arguments, {**APPS, **(environ or {})}) as process:
        RUNNING[f"pusher {number}"] = process
        process.wait_for(" ready.")
        yield process


@contextmanager
def embedded(environ: Mapping[str, str], *, server: str = "daphne") -> Iterator[Web]:
    """Run a host that is one process, as `make run` does: with gRPC if it has a port."""
    arguments = ["-m", "django", "up", "--port", "0", "--server", server]
    with python(arguments, {**APPS, **environ}) as process:
        RUNNING["the host"] = process
        process.wait_for("  start     ")
        line = next(line for line in process.log.splitlines() if line.startswith("  start"))
        yield Web(process, line.split()[1].rstrip("/"))


@contextmanager
def _rpc(environ: Mapping[str, str]) -> Iterator[Child]:
    with python(["-m", "django", "serve_grpc"], {**APPS, **environ}) as process:
        RUNNING["gRPC"] = process
        process.wait_for("Serving gRPC on ")
        yield process


@contextmanager
def host(
    environ: Mapping[str, str] | None = None, *, server: str = "daphne", grpc: bool = False
) -> Iterator[Host]:
    """Run a host of this backend; `grpc`: on the stack in a process of its own, else beside HTTP."""
    port = free_port() if grpc else 0
    given = {**(environ or {}), **({"A2A_GRPC_PORT": str(port)} if grpc else {})}
    with ExitStack() as running:
        if backend.backend() == backend.STACK:
            running.enter_context(worker(environ=given))
            rpc = running.enter_context(_rpc(given)) if grpc else None
            webs = [running.enter_context(web(given, server=server)) for _ in range(2)]
        else:
            rpc = None
            webs = [running.enter_context((embedded if grpc else web)(given, server=server))]
        yield Host(webs, port, rpc)
