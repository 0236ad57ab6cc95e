"""The lab: a whole host on servers of its own, to be hurt. One `episode` is load, fault, recovery and verdict."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import msgspec

from a2a_tasks.failpoints import ArmedFailpoint
from lab.faultlab.agents_app import ledger
from lab.faultlab.checker import Limits, Violation, check, recoveries
from lab.faultlab.client import Client
from lab.faultlab.dump import Dump, dump
from lab.faultlab.history import History, Record, read
from lab.faultlab.postgres import Postgres
from lab.faultlab.processes import Process, beat, pusher, web, worker
from lab.faultlab.redis_server import RedisServer
from lab.outages.pgbouncer import PgBouncer
from lab.outages.standby import PRIMARY
from tests import ROOT
from tests.support.ports import free_ports
from tests.support.proxy import Proxy

__all__ = ["DEFAULT", "QUICK", "Episode", "Lab", "Plan"]

#: Production's timing: what the promises are made of.
DEFAULT: dict[str, str] = {}
#: A quarter of it, for the tiers that have no time: the ratios are production's.
QUICK = {
    "A2A_LEASE_SECONDS": "1.5",
    "A2A_BEAT_SECONDS": "0.4",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_DRAIN_SECONDS": "1.2",
    "A2A_PARK_SECONDS": "0.5",
    "FAULTLAB_NAP": "1.5",
}
#: Seconds an episode may take to settle after its fault, before it counts as lost.
SETTLING = 60.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a lab consists of."""

    webs: int = 2
    workers: int = 3
    pushers: int = 0
    beat: bool = True
    #: Put a proxy between the host and each of its servers? The database may then have standbys, too.
    proxied: bool = False
    #: Between the host and that proxy, a PgBouncer in transaction mode?
    pooled: bool = False
    #: Megabytes of the disk on which the database is; 0 = it is the machine's.
    disk: int = 0
    #: Settings of the host's processes, beside the servers'.
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Where the host's code is: another directory for a broken build.
    source: Path = ROOT

    @property
    def lease(self) -> float:
        """Seconds of a lease."""
        return float(self.environ.get("A2A_LEASE_SECONDS", "6"))

    @property
    def limits(self) -> Limits:
        """What the promises come to with this lease."""
        return Limits(
            recovery=10.0 if self.lease >= 6 else self.lease + 4,
            lease=self.lease,
            max_attempts=int(self.environ.get("A2A_MAX_ATTEMPTS", "3")),
        )


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What came of one."""

    name: str
    seed: int
    seconds: float
    tasks: int
    violations: list[Violation]
    #: Seconds until each interrupted task was going on again.
    recoveries: list[float]
    #: What is worth telling beside, by name.
    figures: dict[str, Any] = field(default_factory=dict)


class Lab:
    """Servers, processes, clients and their history. A context manager; everything in it ends with it."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.directory = Path(tempfile.mkdtemp(prefix="a2a-faultlab-"))
        self.logs = self.directory / "logs"
        self.failpoints = self.directory / "failpoints"
        self.ledger_path = self.directory / "ledger.jsonl"
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self._history = History(self.directory / "history-0.jsonl")
        self._ledger_from = 0
        self._first_task = 0
        self._episodes = 0
        self.webs: list[Process] = []
        self.workers: list[Process] = []
        self.pushers: list[Process] = []
        self.beats: list[Process] = []
        self.urls: dict[str, str] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything."""
        self._stack.close()

    # --- servers and processes ------------------------------------------------------------

    def _start(self) -> None:
        self.logs.mkdir()
        self.failpoints.mkdir()
        self.ledger_path.touch()
        self._start_servers()
        self._migrate()
        ports = free_ports(self.plan.webs)
        self.urls = {f"web{n}": f"http://127.0.0.1:{port}" for n, port in enumerate(ports, 1)}
        self._stack.callback(self._stop_processes)
        self._start_processes(ports)

    def _start_servers(self) -> None:
        self.postgres = Postgres(PRIMARY if self.plan.proxied else None, disk=self.plan.disk)
        self._stack.callback(lambda: self.postgres.close())  # whichever it is then
        self.postgres.start()
        self.redis = RedisServer()
        self._stack.callback(self.redis.close)
        self.redis.start()
        self.database = "lab"
        self.postgres.create(self.database)
        if self.plan.proxied:
            self.postgres_proxy = self._stack.enter_context(Proxy(self.postgres.port))
            self.redis_proxy = self._stack.enter_context(Proxy(self.redis.port))
        if self.plan.pooled:
            self.pool = self._stack.enter_context(PgBouncer(self.postgres_proxy.port))

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        return self.postgres.execute(sql, self.database)

    def dump(self) -> Dump:
        """The rows of this episode's tasks."""
        return dump(self.postgres.url(self.database), self._first_task)

    @property
    def servers(self) -> dict[str, str]:
        """What names the servers to the host's processes."""
        proxied = self.plan.proxied
        redis = self.redis.url(0, port=self.redis_proxy.port if proxied else None)
        port = self.postgres_proxy.port if proxied else None
        if self.plan.pooled:
            port = self.pool.port
        return {
            "DATABASE_URL": self.postgres.url(self.database, port=port),
            "REDIS_URL": redis,
            "CELERY_BROKER_URL": redis,
            **({"A2A_PREPARE": "0"} if self.plan.pooled else {}),
        }

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the host's processes."""
        return {
            **{key: value for key, value in os.environ.items() if not _ours(key)},
            **self.servers,
            "SECRET_KEY": "only-for-the-lab",
            "VAR_DIR": str(self.directory / "var"),
            "DJANGO_SETTINGS_MODULE": "a2a_project.settings",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "A2A_APPS": "lab.faultlab.agents_app",
            "A2A_DEFAULT_AGENT": "lab-short",
            "A2A_ANONYMOUS": "1",
            "SECURE_COOKIES": "0",  # its operator comes without TLS
            "A2A_FAILPOINTS": str(self.failpoints),
            "FAULTLAB_LEDGER": str(self.ledger_path),
            "FAULTLAB_TAI": str(ledger.ahead()),
            "FAULTLAB_WEBS": " ".join(self.urls.values()),
            **self.plan.environ,
        }

    def _migrate(self) -> None:
        command = [sys.executable, "-m", "django", "migrate", "-v", "0", "--skip-checks"]
        subprocess.run(command, cwd=self.plan.source, env=self.environ, check=True, timeout=300)

    def _start_processes(self, ports: Sequence[int]) -> None:
        common: dict[str, Any] = {
            "environ": self.environ,
            "directory": self.plan.source,
            "logs": self.logs,
            "tell": self.tell,
        }
        for (name, _), port in zip(self.urls.items(), ports, strict=True):
            self.webs.append(web(name, port, **common))
        self.workers += [worker(f"worker{n}", **common) for n in range(1, self.plan.workers + 1)]
        self.pushers += [pusher(f"pusher{n}", **common) for n in range(1, self.plan.pushers + 1)]
        if self.plan.beat:
            self.beats.append(beat("beat", self.directory / "schedule", **common))
        for process in self.processes:
            process.start()
        self.all_ready()

    @property
    def processes(self) -> list[Process]:
        """All processes of the host."""
        return [*self.webs, *self.workers, *self.pushers, *self.beats]

    def all_ready(self) -> None:
        """Return when every process is ready. Raises AssertionError with the log of one that is not."""
        for process in self.processes:
            process.wait_ready()

    def _stop_processes(self) -> None:
        for process in self.processes:
            process.stop_at_once()

    @contextmanager
    def another_worker(self, name: str, **environ: str) -> Iterator[Process]:
        """One worker more for as long as the block lasts, with an environment of its own."""
        made = worker(
            name,
            environ={**self.environ, **environ},
            directory=self.plan.source,
            logs=self.logs,
            tell=self.tell,
        )
        made.start()
        try:
            made.wait_ready()
            yield made
        finally:
            made.stop()

    def process_of(self, pid: int) -> str:
        """The name of the process with that id."""
        return next((p.name for p in self.processes if p.popen and p.pid == pid), f"process {pid}")

    @property
    def runners(self) -> list[Process]:
        """The processes in which agents run: workers, or else the web processes."""
        return self.workers or self.webs

    def busy_worker(
        self, rng: random.Random, agent: str = "%", *, parked: bool = False
    ) -> Process | None:
        """A worker that holds a run (of this agent; one that was parked after it had said something), if one does."""
        rows = self.execute(
            "select distinct r.worker from a2a_tasks_run r join a2a_tasks_task t on t.id = r.task_id"
            f" where r.status = 'running' and t.agent like '{agent}' and r.said >= {int(parked)}"
        )
        pids = {int(name.rpartition(":")[2]) for (name,) in rows}
        busy = [
            process
            for process in self.runners
            if process.popen and process.popen.poll() is None and process.pid in pids
        ]
        return rng.choice(busy) if busy else None

    # --- telling and checking -------------------------------------------------------------

    def tell(self, **record: Any) -> None:
        """Add to the history of the episode."""
        self._history.append(**record)

    def client(self, rng: random.Random) -> Client:
        """A client of all web processes."""
        return Client(self.urls, self.tell, rng)

    def episode(
        self,
        name: str,
        seed: int,
        drive: Callable[[random.Random], Awaitable[Any]],
        *,
        settling: float = SETTLING,
    ) -> Episode:
        """One episode: `drive` loads and hurts the host; then it has to settle, and the checker decides.

        What `drive` returns, if it is a dict, is told as the episode's figures; its `violations` are counted.
        """
        begun = time.monotonic()
        self._begin()
        figures: dict[str, Any] = {}
        failures: list[Violation] = []
        try:
            figures = asyncio.run(self._driven(drive, random.Random(f"{name} {seed}"), settling))
        except Exception as fault:  # noqa: BLE001 - whatever it is, the episode has failed
            failures.append(Violation("driver", f"{type(fault).__name__}: {fault}", []))
        failures += figures.pop("violations", [])
        self.disarm()
        failures += self._unsettled(settling)
        violations, recovered, tasks = self._verdict()
        return Episode(
            name=name,
            seed=seed,
            seconds=time.monotonic() - begun,
            tasks=tasks,
            violations=[*failures, *violations],
            recoveries=recovered,
            figures=figures,
        )

    async def _driven(
        self,
        drive: Callable[[random.Random], Awaitable[Any]],
        rng: random.Random,
        settling: float,
    ) -> dict[str, Any]:
        async with asyncio.timeout(settling * 2):
            answer = await drive(rng)
        return answer if isinstance(answer, dict) else {}

    def _begin(self) -> None:
        self._episodes += 1
        self._history = History(self.directory / f"history-{self._episodes}.jsonl")
        self._ledger_from = self.ledger_path.stat().st_size
        ((self._first_task,),) = self.execute("select coalesce(max(id), 0) from a2a_tasks_task")
        for process in self.processes:
            running = process.popen is not None and process.popen.poll() is None
            self.tell(
                what="process",
                name=process.name,
                pid=process.pid,
                event="ready" if running else "died",
                code=None,
            )

    def _unsettled(self, seconds: float) -> list[Violation]:
        """Wait until no run is left; what is still there after that long is lost."""
        deadline = time.monotonic() + seconds
        query = (
            "select r.id, r.task_id, r.status, r.attempt, r.worker from a2a_tasks_run r"
            f" where r.status in ('queued', 'running') and r.task_id > {self._first_task}"
        )
        while rows := self.execute(query):
            if time.monotonic() > deadline:
                return [Violation("I1", f"{len(rows)} runs did not settle", [list(rows)])]
            time.sleep(0.05)
        return []

    def _verdict(self) -> tuple[list[Violation], list[float], int]:
        history, ledger = self.history(), self.ledger()
        rows = self.dump()
        found = check(history, ledger, rows, self.plan.limits)
        return found, recoveries(history, ledger), len(rows.tasks)

    def history(self) -> list[Record]:
        """What the episode's clients and faults told."""
        return read(self._history.path)

    def ledger(self) -> list[Record]:
        """What the episode's agents did."""
        part = self.directory / f"ledger-{self._episodes}.jsonl"
        part.write_bytes(self._ledger_bytes())
        return read(part)

    def _ledger_bytes(self) -> bytes:
        with self.ledger_path.open("rb") as ledger:
            ledger.seek(self._ledger_from)
            return ledger.read()

    def keep(self, into: Path) -> None:
        """Copy history, ledger and logs of the last episode, for whoever looks into a failure."""
        into.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._history.path, into / "history.jsonl")
        (into / "ledger.jsonl").write_bytes(self._ledger_bytes())
        shutil.copytree(self.logs, into / "logs", dirs_exist_ok=True)

    # --- faults ---------------------------------------------------------------------------

    def arm(self, name: str, action: str, *, nth: int = 1) -> Fault:
        """Arm a failpoint: the first process to pass it for the n-th time from now takes the fault."""
        fault = Fault(f"{self._episodes}-{time.monotonic_ns()}", name, action, self)
        armed = ArmedFailpoint(id=fault.id, name=name, action=action, nth=nth)
        new = self.failpoints / "armed.new"
        new.write_bytes(msgspec.json.encode(armed))
        new.rename(self.failpoints / "armed")
        return fault

    def disarm(self) -> None:
        """No failpoint is armed any more."""
        (self.failpoints / "armed").unlink(missing_ok=True)

    def hurt(self, process: Process, action: str) -> int:
        """Send a process the signal of an action (`kill`, `term`, `stop`, `cont`); returns its id."""
        signum = {
            "kill": signal.SIGKILL,
            "term": signal.SIGTERM,
            "stop": signal.SIGSTOP,
            "cont": signal.SIGCONT,
        }[action]
        self.tell(
            what="fault", name=process.name, process=process.name, pid=process.pid, action=action
        )
        return process.signal(signum)


@dataclass
class Fault:
    """An armed failpoint, and whether it has struck."""

    id: str
    name: str
    action: str
    lab: Lab
    pid: int = 0

    async def struck(self, seconds: float) -> bool:
        """Wait until a process took it; told to the history with its moment. False if none did for so long."""
        path = self.lab.failpoints / f"fired-{self.id}"
        deadline = time.monotonic() + seconds
        while not path.exists() or not path.read_bytes().endswith(b"\n"):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        self.pid = int(path.read_text().split()[0])
        process = self.lab.process_of(self.pid)
        self.lab.tell(
            what="fault", name=self.name, process=process, pid=self.pid, action=self.action
        )
        return True

    async def wake(self, seconds: float) -> None:
        """Let a stopped process sleep for so long, then let it go on: a zombie."""
        await asyncio.sleep(seconds)
        os.kill(self.pid, signal.SIGCONT)
        self.lab.tell(
            what="fault",
            name=self.name,
            process=self.lab.process_of(self.pid),
            pid=self.pid,
            action="cont",
        )


def _ours(key: str) -> bool:
    return key.startswith(("A2A_", "FAULTLAB_", "TEST_", "DJANGO_", "PYTEST_"))
