"""The measured servers: this host in two ways of running agents, and its peers. Each is a few child processes.

Peers are installed once, under `var/bench/`, from the pinned lists in `lab/bench/peers/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

from lab.bench import client, procs
from lab.bench.postgres import Server
from lab.bench.procs import Child, say

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).resolve().parent / "peers"
CACHE = ROOT / "var" / "bench"
START_SECONDS = 60
#: Prefixes of variables that measured hosts do not inherit.
HOST_PREFIXES = ("A2A_", "CELERY_", "REDIS_", "DATABASE_", "DJANGO_")


@contextlib.contextmanager
def server_of_run() -> Iterator[Server]:
    """The PostgreSQL server of a run, which drops its databases at the end. SystemExit if a process has failed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    server = Server()
    try:
        yield server
    except procs.Failed as error:
        raise SystemExit(str(error)) from None
    finally:
        server.close()


def _clean_environment() -> dict[str, str]:
    """The caller's environment without settings of a host: those are the run's to decide."""
    return {key: value for key, value in os.environ.items() if not key.startswith(HOST_PREFIXES)}


class Target(ABC):
    """Something that can be measured: a database that stays for a while, and processes that come and go.

    Only one target is up at a time: idle ones would take connections of the one PostgreSQL, and some of its time.
    """

    name: ClassVar[str]
    path: ClassVar[str] = "/"
    #: Where its processes run.
    root: ClassVar[Path] = ROOT

    def __init__(self, server: Server) -> None:
        self.server = server
        self.database = ""
        self.endpoint = client.Endpoint("")
        self.children: list[Child] = []

    @abstractmethod
    def migrate(self) -> None:
        """Install what is needed, and make the tables in the new database."""

    @abstractmethod
    def launch(self, port: int) -> Iterator[Child]:
        """Start its processes."""

    def prepare(self) -> None:
        """Begin with an empty store."""
        self.database = self.server.fresh(self.name)
        self.migrate()

    @contextlib.asynccontextmanager
    async def up(self, *, warm: bool = True) -> AsyncIterator[None]:
        """Start its processes, wait until they answer right, warm them up, and stop them whatever happens."""
        port = procs.free_port()
        self.endpoint = client.Endpoint(f"http://127.0.0.1:{port}{self.path}")
        try:
            for child in self.launch(port):
                self.children.append(child)
            await self._ready()
            if warm:
                await asyncio.gather(*(self._warm() for _ in range(16)))
            yield
        finally:
            while self.children:
                self.children.pop().stop()

    def child(self, suffix: str, command: list[str], env: dict[str, str]) -> Child:
        """A child process that logs to `var/bench/logs/`."""
        log = CACHE / "logs" / f"{self.name}{suffix}.log"
        return Child(command, {**_clean_environment(), **env}, log, self.root)

    def pids(self) -> set[int]:
        """Its processes (without the database's)."""
        return procs.tree(child.pid for child in self.children)

    def cpu(self) -> dict[int, float]:
        """CPU seconds so far of its processes and of the database sessions that work for it."""
        sessions = {pid for pid in self.server.sessions(self.database) if procs.is_postgres(pid)}
        return procs.cpu_seconds(self.pids() | sessions)

    async def _ready(self) -> None:
        until = time.monotonic() + START_SECONDS
        while True:
            for child in self.children:
                child.check()
            try:
                await client.echo(self.endpoint)
            except (OSError, RuntimeError, ValueError) as error:
                if time.monotonic() > until:
                    log = self.children[-1].log
                    text = f"{self.name} is not up after {START_SECONDS} s ({error}); see {log}"
                    raise procs.Failed(text) from error
            else:
                return
            await asyncio.sleep(0.2)

    async def _warm(self) -> None:
        for _ in range(4):
            await client.echo(self.endpoint)


class Cost:
    """`with Cost(target) as cost:` and then `wall`, `server_cpu` (seconds), `client_share` (of one core)."""

    wall = server_cpu = client_share = 0.0

    def __init__(self, target: Target) -> None:
        self.target = target

    def __enter__(self) -> Cost:
        self.before, self.client, self.t0 = (
            self.target.cpu(),
            procs.client_cpu(),
            time.perf_counter(),
        )
        return self

    def __exit__(self, *exc: object) -> None:
        self.wall = time.perf_counter() - self.t0
        self.client_share = (procs.client_cpu() - self.client) / self.wall
        self.server_cpu = sum(v - self.before.get(pid, 0.0) for pid, v in self.target.cpu().items())


# --- peers ------------------------------------------------------------------------------------


def _is_installed(stamp: Path, pins: Path) -> bool:
    return stamp.exists() and stamp.read_text() == pins.read_text()


class A2aSdk(Target):
    """a2a-sdk on uvicorn with DatabaseTaskStore: the reference of all ratios."""

    name = "a2a-pg"
    home = CACHE / "a2a-sdk"
    python = home / "bin" / "python"

    def migrate(self) -> None:
        """Its virtual environment, made on first use; its store makes its table itself."""
        pins, stamp = PEERS / "requirements.txt", self.home / "installed"
        if not _is_installed(stamp, pins):
            say("installing the peer a2a-sdk (once)")
            procs.run([sys.executable, "-m", "venv", "--clear", str(self.home)])
            procs.run([str(self.python), "-m", "pip", "install", "-q", "-r", str(pins)])
            stamp.write_text(pins.read_text())

    def launch(self, port: int) -> Iterator[Child]:
        """One process."""
        env = {"DB": self.database.replace("postgres://", "postgresql+asyncpg://", 1)}
        yield self.child("", [str(self.python), str(PEERS / "a2a_sdk_server.py"), str(port)], env)


class A2aJs(Target):
    """@a2a-js/sdk on express with its Kysely store: the strongest durable peer."""

    name = "js-pg"
    home = CACHE / "a2a-js"

    def migrate(self) -> None:
        """Its packages, installed on first use, and its tables."""
        pins, stamp = PEERS / "package.json", self.home / "installed"
        if not _is_installed(stamp, pins):
            say("installing the peer @a2a-js/sdk (once)")
            self.home.mkdir(parents=True, exist_ok=True)
            shutil.copy(pins, self.home / "package.json")
            procs.run(["npm", "install", "--silent", "--no-fund", "--no-audit"], cwd=self.home)
            stamp.write_text(pins.read_text())
        tool = self.home / "node_modules" / ".bin" / "a2a-db"
        procs.run([str(tool), "upgrade", "--url", self.database], cwd=self.home)

    def launch(self, port: int) -> Iterator[Child]:
        """One process."""
        env = {"DB": self.database, "JS_HOME": str(self.home)}
        yield self.child("", ["node", str(PEERS / "a2a_js_server.mjs"), str(port)], env)


# --- this host --------------------------------------------------------------------------------


class OursLocal(Target):
    """This host, agents running in the web process."""

    name = "ours-local"
    path = "/agents/demo/"
    runs = "local"
    web_process: Child
    #: Settings of its own.
    settings: ClassVar[dict[str, str]] = {}

    def env(self, redis: str = "") -> dict[str, str]:
        """The settings of a measured host."""
        servers = {"DATABASE_URL": self.database, "REDIS_URL": redis, "CELERY_BROKER_URL": redis}
        access = {"A2A_ANONYMOUS": "1", "ALLOWED_HOSTS": "*", "SECRET_KEY": "bench"}
        runs = {"A2A_RUNS": self.runs, "LOG_LEVEL": "WARNING", "VAR_DIR": str(CACHE / self.name)}
        return {**servers, **access, **runs, **self.settings}

    def migrate(self) -> None:
        """The tables, which are the same however agents run."""
        env = {**_clean_environment(), **self.env(), "A2A_RUNS": "local"}
        procs.run([sys.executable, "manage.py", "migrate", "-v", "0"], env=env, cwd=self.root)

    def web(self, port: int, redis: str = "") -> Child:
        """The web process."""
        command = ["manage.py", "serve", "--port", str(port)]
        self.web_process = self.child("", [sys.executable, *command], self.env(redis))
        return self.web_process

    def launch(self, port: int) -> Iterator[Child]:
        """The web process alone."""
        yield self.web(port)


class OursCelery(OursLocal):
    """This host, agents running in a Celery worker; hints and broker on a Redis of its own."""

    name = "ours-celery"
    runs = "celery"
    worker: Child

    def launch(self, port: int) -> Iterator[Child]:
        """Redis, the worker and the web process."""
        redis_port = procs.free_port()
        binary, redis = _redis_binary() or "redis-server", f"redis://127.0.0.1:{redis_port}/0"
        broker = [binary, "--port", str(redis_port), "--bind", "127.0.0.1", "--save", ""]
        worker = ["-m", "celery", "-A", "a2a_project", "worker", "-P", "threads", "-c", "4"]
        worker += ["-l", "WARNING", "--without-gossip", "--without-mingle", "-Q", "agents"]
        yield self.child("-redis", broker, {})
        self.worker = self.child("-worker", [sys.executable, *worker], self.env(redis))
        yield self.worker
        yield self.web(port, redis)


class BeforeLocal(OursLocal):
    """The host of another checkout (`--before`), run by this checkout's Python."""

    name = "before-local"
    #: Hosts that had a choice of servers are measured on the server of today.
    settings: ClassVar[dict[str, str]] = {"A2A_SERVER": "uvicorn"}


class BeforeCelery(OursCelery):
    """The host of another checkout (`--before`) with a Celery worker."""

    name = "before-celery"
    settings = BeforeLocal.settings


class OursWorker(OursCelery):
    """This host with agents that wait, and slots for thousands of them in one worker."""

    name = "ours-worker"
    settings = {
        "A2A_RUN_SLOTS": "4000",
        "A2A_APPS": "examples.demo,lab.bench.waiters",
        "A2A_PARK_SECONDS": "86400",  # its agents wait in memory
    }

    def at(self, agent: str) -> client.Endpoint:
        """Where an agent answers."""
        return client.Endpoint(self.endpoint.url.replace("/demo/", f"/{agent}/"))


class OursRpc(OursCelery):
    """The stack, with the process that serves gRPC."""

    name = "ours-grpc"
    address = ""
    serving: Child

    def launch(self, port: int) -> Iterator[Child]:
        """Everything `ours-celery` has, and `serve_grpc`."""
        yield from super().launch(port)
        number = procs.free_port()
        self.address = f"127.0.0.1:{number}"
        command = [sys.executable, "manage.py", "serve_grpc", "--port", str(number)]
        self.serving = self.child("-grpc", command, self.env(self.redis))
        yield self.serving

    def web(self, port: int, redis: str = "") -> Child:
        """The web process, whose Redis is also that of gRPC."""
        self.redis = redis
        return super().web(port, redis)


def _redis_binary() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


def lacks(name: str) -> str:
    """Return what the target needs and this machine lacks; empty = nothing."""
    if name == "js-pg" and not (shutil.which("node") and shutil.which("npm")):
        return "node 20 or newer, and npm"
    if name in {"before-celery", "ours-celery", "ours-grpc", "ours-worker"} and not _redis_binary():
        return "redis-server or valkey-server"
    if name.startswith("before-") and BeforeLocal.root == ROOT:
        return "the path of another checkout (--before)"
    return ""


_KINDS = (A2aSdk, A2aJs, BeforeLocal, OursLocal, BeforeCelery, OursCelery, OursRpc, OursWorker)
TARGETS: dict[str, type[Target]] = {kind.name: kind for kind in _KINDS}
