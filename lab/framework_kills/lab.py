"""A lab with an agent of a framework and its model: a host on PostgreSQL with three workers, or one process on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from lab.faultlab.checker import Violation
from lab.faultlab.lab import Episode, Fault, Lab, Plan
from lab.faultlab.processes import Process
from lab.framework_kills.cases import SQLITE, Case, Kill
from lab.framework_kills.checker import check, count, find_recoveries
from lab.framework_kills.evidence import Evidence, Kept, Killed
from lab.framework_kills.oracle import Oracle
from lab.framework_kills.talk import Talk
from tests import ROOT
from tests.model_server import serving_model
from tests.support.execution.waiting import until
from tests.support.ports import free_ports

__all__ = ["EmbeddedKillsLab", "KillsLab", "find_commit", "plan", "run"]

#: Leases that a busy machine keeps, and frequent looks: a run is taken over three seconds after its process died.
SETTINGS = {"A2A_LEASE_SECONDS": "3", "A2A_BEAT_SECONDS": "0.6", "A2A_POLL_SECONDS": "0.3"}
#: Seconds that an armed failpoint may take after the end of its task.
STRIKING = 10.0
#: Seconds until a conversation must have come to its end.
SETTLING = 90.0
STEPS = (
    "select t.public_id, s.name, s.result from a2a_tasks_step s"
    " join a2a_tasks_task t on t.id = s.task_id where t.id > "
)


def plan(framework: str, backend: str, *, beat: bool = True, source: Path = ROOT) -> Plan:
    """A lab with the agent of a framework."""
    environ = {**SETTINGS, "KILLS_FRAMEWORK": framework}
    workers = 0 if backend == SQLITE else 3
    return Plan(webs=1, workers=workers, beat=beat and workers > 0, environ=environ, source=source)


class Hunt:
    """The kills of one task, one after the other: each is made when its moment has come."""

    def __init__(self, lab: KillsLab, task: int, kills: Sequence[Kill]) -> None:
        self._lab, self._task = lab, task
        #: Those to come, and the failpoint of the first one, if it is armed.
        self._left = deque(kills)
        self._fault: Fault | None = None
        self._victim: Process
        self.made: list[Killed] = []

    def reach(self, what: str, task: int, line: int, n: int) -> bool:
        """Take note of a moment, in the thread of the model server: kill, or arm the failpoint. True if killed."""
        if task != self._task or not self._left or self._fault is not None:
            return False
        kill = self._left[0]
        if kill.what == "point":
            if (what, line) == ("asked", kill.line):
                self._arm(kill)
            return False
        if what in {"asked", "begun"} and line == kill.line:  # it waits: later it may be too late
            self._victim = self._lab.find_victim()
        if (what, line, n) != (kill.what, kill.line, kill.n):
            return False
        self._note(self._lab.hurt(self._victim, "kill"))
        return True

    def begin_turn(self, turn: int) -> None:
        """Arm a failpoint that is passed before the model is asked."""
        if self._left and self._left[0].line == -1 and self._left[0].turn == turn:
            self._arm(self._left[0])

    def _arm(self, kill: Kill) -> None:
        self._fault = self._lab.arm(kill.name, "kill", nth=kill.n)

    def _note(self, pid: int) -> None:
        kill = self._left.popleft()
        self.made.append(Killed(self._task, str(kill), time.time(), pid))

    async def watch(self) -> None:
        """Take note of failpoints that strike, until all kills are made."""
        while self._left:
            fault = self._fault
            if fault is not None and await fault.struck(0.05):
                self._note(fault.pid)
                self._fault = None
            await asyncio.sleep(0.01)


class KillsLab(Lab):
    """A host on PostgreSQL, with one web process and three workers; one of them carries the run, and is killed."""

    case: Case
    evidence: Evidence

    def _start_processes(self, ports: Sequence[int]) -> None:
        self.oracle = Oracle()
        self._stack.enter_context(serving_model(model=self.oracle))
        super()._start_processes(ports)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the host's processes."""
        own = {
            "A2A_APPS": "lab.framework_kills.host_app",
            "A2A_DEFAULT_AGENT": "chat",
            "PYTHONDONTWRITEBYTECODE": "",  # processes start again and again
            "CHAT_URL": self.oracle.url if hasattr(self, "oracle") else "http://127.0.0.1",
        }
        return {**super().environ, **own}

    def find_victim(self) -> Process:
        """The process that carries the run. Raises AssertionError if there is none."""
        for _ in range(200):
            if (busy := self.busy_worker(self.rng)) is not None:
                return busy
            time.sleep(0.01)
        raise AssertionError("no worker has the run")

    async def talk(self, rng: Any) -> dict[str, Any]:
        """Have the conversation, with its kills."""
        self.rng = rng
        self.evidence = evidence = Evidence(self.case)
        (url,) = self.urls.values()
        async with Talk(url, rng, self.case) as talk:
            for number, script in enumerate(self.case.tasks):
                hunt = Hunt(self, number, script.kills)
                self.oracle.begin_task(hunt.reach)
                watching = asyncio.ensure_future(hunt.watch())
                try:
                    evidence.finals.append(await talk.carry(number, hunt.begin_turn))
                    await asyncio.wait([watching], timeout=STRIKING)
                finally:
                    watching.cancel()
                    self.disarm()
                evidence.kills += hunt.made
        return {}

    async def cancel(self, case: Case, times: int) -> list[float]:
        """Cancel tasks whose models speak. Returns the seconds until the model server saw its client leave, of each."""
        self.oracle.begin(case)
        (url,) = self.urls.values()
        async with Talk(url, Random(case.seed), case) as talk:
            sent = [await talk.cancel() for _ in range(times)]
        await until(lambda: all(one.ended for one in self.oracle.requests))
        return [one.ended - at for one, at in zip(self.oracle.requests, sent, strict=True)]

    def _verdict(self) -> tuple[list[Violation], list[float], int]:
        evidence = self.evidence
        evidence.exchanges, evidence.executions = self.oracle.requests, self.oracle.executions
        rows = self.postgres.execute(f"{STEPS}{self._first_task}", self.database)
        evidence.steps = [Kept(*row) for row in rows]
        return check(evidence), find_recoveries(evidence), len(evidence.finals)

    def keep(self, into: Path) -> None:
        """Copy all there is about the last episode."""
        super().keep(into)
        (into / "evidence.json").write_bytes(msgspec.json.encode(self.evidence))


class EmbeddedKillsLab(KillsLab):
    """A host that is one process on SQLite, and is killed as a whole."""

    def _start(self) -> None:
        self.logs.mkdir()
        self.failpoints.mkdir()
        self.ledger_path.touch()
        (self.directory / "var").mkdir()
        self.database = ""
        self.postgres = Rows(self.directory / "var" / "host.sqlite3")  # type: ignore[assignment]
        self._migrate()
        (port,) = free_ports(1)
        self.urls = {"web1": f"http://127.0.0.1:{port}"}
        self._stack.callback(self._stop_processes)
        self._start_processes([port])

    @property
    def servers(self) -> dict[str, str]:
        """There are none."""
        return {}

    def find_victim(self) -> Process:
        """The host."""
        return self.webs[0]


class Rows:
    """The rows in a file of SQLite, asked for as those in a database of PostgreSQL."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def execute(self, statement: str, _: str = "") -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with closing(sqlite3.connect(self._path, timeout=30)) as connection:
            return connection.execute(statement).fetchall()


def run(lab: KillsLab, case: Case) -> Episode:
    """The conversation of a case, and what came of it."""
    lab.all_ready()
    lab.case = case
    lab.oracle.begin(case)
    episode = lab.episode(
        f"{case.framework} {case.backend}", case.seed, lab.talk, settling=SETTLING
    )
    episode.figures.update(count(lab.evidence) | {"commit": find_commit()})
    return episode


@cache
def find_commit() -> str:
    """Return the commit of the checkout, with a mark if something was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip()
