"""What is measured: this host in two ways of running agents, and its peers. Each is a few child processes.

Peers are installed once, under `var/bench/`, from the pinned lists in `bench/peers/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench import client, procs
from bench.postgres import Server
from bench.procs import Child, say

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"
CACHE = ROOT / "var" / "bench"
START_SECONDS = 60
#: What the caller's environment must not decide for a measured host.
HOST_PREFIXES = ("A2A_", "CELERY_", "REDIS_", "DATABASE_", "DJANGO_")


def _clean_environment() -> dict[str, str]:
    """The caller's environment without settings of a host: those are the run's to decide."""
    return {key: value for key, value in os.environ.items() if not key.startswith(HOST_PREFIXES)}


@dataclass
class Target:
    """A running target: its endpoint, database and processes."""

    name: str
    endpoint: client.Endpoint
    database: str
    server: Server
    children: list[Child] = field(default_factory=list)

    def pids(self) -> set[int]:
        """Its processes (without the database's)."""
        return procs.tree(child.pid for child in self.children)

    def cpu(self) -> dict[int, float]:
        """CPU seconds so far of its processes and of the database sessions that work for it."""
        sessions = {pid for pid in self.server.sessions(self.database) if procs.is_postgres(pid)}
        return procs.cpu_seconds(self.pids() | sessions)

    async def ready(self) -> None:
        """Wait until a blocking echo is answered right: server, database and worker are all there."""
        until = time.monotonic() + START_SECONDS
        while True:
            for child in self.children:
                child.check()
            try:
                await client.echo(self.endpoint)
                return
            except (OSError, RuntimeError, ValueError) as error:
                if time.monotonic() > until:
                    raise procs.Failed(
                        f"{self.name} is not up after {START_SECONDS} s: {error}"
                    ) from error
            await asyncio.sleep(0.2)

    def stop(self) -> None:
        """Stop all its processes, the web server first."""
        for child in self.children:
            child.stop()


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


@dataclass(frozen=True)
class Setup:
    """What starting a target needs to know."""

    server: Server
    web_server: str = "uvicorn"

    def child(self, name: str, command: list[str], env: dict[str, str]) -> Child:
        """A child process that logs to `var/bench/logs/NAME.log`."""
        return Child(command, {**_clean_environment(), **env}, CACHE / "logs" / f"{name}.log", ROOT)


# --- peers ------------------------------------------------------------------------------------


def _installed(stamp: Path, pins: Path) -> bool:
    return stamp.exists() and stamp.read_text() == pins.read_text()


def install_a2a_sdk() -> Path:
    """The Python of the reference peer's virtual environment, made on first use."""
    home, pins = CACHE / "a2a-sdk", PEERS / "requirements.txt"
    python = home / "bin" / "python"
    if not _installed(home / "installed", pins):
        say("installing the peer a2a-sdk (once)")
        procs.run([sys.executable, "-m", "venv", "--clear", str(home)])
        procs.run([str(python), "-m", "pip", "install", "-q", "-r", str(pins)])
        (home / "installed").write_text(pins.read_text())
    return python


def install_a2a_js() -> Path:
    """The directory with the JavaScript peer's packages, made on first use."""
    home, pins = CACHE / "a2a-js", PEERS / "package.json"
    if not _installed(home / "installed", pins):
        say("installing the peer @a2a-js/sdk (once)")
        home.mkdir(parents=True, exist_ok=True)
        shutil.copy(pins, home / "package.json")
        procs.run(["npm", "install", "--silent", "--no-fund", "--no-audit"], cwd=home)
        (home / "installed").write_text(pins.read_text())
    return home


def start_a2a_pg(setup: Setup) -> Target:
    """a2a-sdk on uvicorn with DatabaseTaskStore: the reference of all ratios."""
    python, database, port = install_a2a_sdk(), setup.server.fresh("a2a-pg"), procs.free_port()
    env = {"DB": database.replace("postgres://", "postgresql+asyncpg://", 1)}
    child = setup.child("a2a-pg", [str(python), str(PEERS / "a2a_sdk_server.py"), str(port)], env)
    return Target("a2a-pg", _endpoint(port), database, setup.server, [child])


def start_js_pg(setup: Setup) -> Target:
    """@a2a-js/sdk on express with its Kysely store: the strongest durable peer."""
    home, database, port = install_a2a_js(), setup.server.fresh("js-pg"), procs.free_port()
    env = {"DB": database, "JS_HOME": str(home)}
    procs.run(
        [str(home / "node_modules" / ".bin" / "a2a-db"), "upgrade", "--url", database], cwd=home
    )
    child = setup.child("js-pg", ["node", str(PEERS / "a2a_js_server.mjs"), str(port)], env)
    return Target("js-pg", _endpoint(port), database, setup.server, [child])


# --- this host --------------------------------------------------------------------------------


def _endpoint(port: int, path: str = "/") -> client.Endpoint:
    return client.Endpoint(f"http://127.0.0.1:{port}{path}")


def _host_env(name: str, database: str, runs: str, redis: str = "") -> dict[str, str]:
    """Settings of a measured host."""
    env = {"DATABASE_URL": database, "REDIS_URL": redis, "CELERY_BROKER_URL": redis}
    env |= {"A2A_RUNS": runs, "A2A_ANONYMOUS": "1", "ALLOWED_HOSTS": "*", "LOG_LEVEL": "WARNING"}
    return env | {"SECRET_KEY": "bench", "VAR_DIR": str(CACHE / name)}


def _start_host(setup: Setup, name: str, env: dict[str, str]) -> Target:
    python, port = sys.executable, procs.free_port()
    procs.run(
        [python, "manage.py", "migrate", "-v", "0"], env={**_clean_environment(), **env}, cwd=ROOT
    )
    serve = [python, "manage.py", "serve", "--server", setup.web_server, "--port", str(port)]
    child = setup.child(name, serve, env)
    return Target(
        name, _endpoint(port, "/agents/demo/"), env["DATABASE_URL"], setup.server, [child]
    )


def start_ours_local(setup: Setup) -> Target:
    """This host, agents running in the web process."""
    database = setup.server.fresh("ours-local")
    return _start_host(setup, "ours-local", _host_env("ours-local", database, "local"))


def start_ours_celery(setup: Setup) -> Target:
    """This host, agents running in a Celery worker; hints and broker on a Redis of the run's own."""
    binary, port = _redis_binary() or "redis-server", procs.free_port()
    redis = setup.child(
        "redis", [binary, "--port", str(port), "--bind", "127.0.0.1", "--save", ""], {}
    )
    try:
        env = _host_env(
            "ours-celery",
            setup.server.fresh("ours-celery"),
            "celery",
            f"redis://127.0.0.1:{port}/0",
        )
        target = _start_host(setup, "ours-celery", env)
        worker = [
            "-m",
            "celery",
            "-A",
            "a2a_project",
            "worker",
            "-P",
            "threads",
            "-c",
            "4",
            "-l",
            "WARNING",
        ]
        worker += ["--without-gossip", "--without-mingle", "-Q", "agents"]
        target.children += [
            setup.child("ours-celery-worker", [sys.executable, *worker], env),
            redis,
        ]
    except BaseException:
        redis.stop()
        raise
    return target


def _redis_binary() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


def lacks(name: str) -> str:
    """What this machine lacks for the target; empty when nothing."""
    if name == "js-pg" and not (shutil.which("node") and shutil.which("npm")):
        return "node 20 or newer, and npm"
    if name == "ours-celery" and not _redis_binary():
        return "redis-server or valkey-server"
    return ""


STARTERS: dict[str, Callable[[Setup], Target]] = {
    "a2a-pg": start_a2a_pg,
    "js-pg": start_js_pg,
    "ours-local": start_ours_local,
    "ours-celery": start_ours_celery,
}


@contextlib.contextmanager
def running(names: list[str], setup: Setup) -> Iterator[list[Target]]:
    """Start the named targets on fresh databases, hand them out ready, and stop them whatever happens."""
    targets: list[Target] = []
    try:
        for name in names:
            say(f"starting {name}")
            targets.append(STARTERS[name](setup))
        yield targets
    finally:
        for target in targets:
            target.stop()
