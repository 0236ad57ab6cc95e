"""A database that goes away or is far away is nobody's death: a PostgreSQL of the tests' own, and a real worker on it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import backend
from tests.campaigns.faultlab.postgres import Postgres
from tests.campaigns.faultlab.processes import Process, worker
from tests.campaigns.faultlab.proxy import Behaviour, Proxy
from tests.support.execution.waiting import eventually

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(500)]
TASKS = 20
SEND = """
import django
django.setup()
from a2a_tasks.caller import Scope
from a2a_tasks.store.accept import accept
from tests.support.store.world import new
for n in range({tasks}):
    accept(new(f"task-{{n}}", text="{text}", scope=Scope("", "user:alice", "{agent}"), queue="neighbours"))
"""


class Host:
    """A worker at default settings, and the database it works on."""

    def __init__(self, logs: Path) -> None:
        self.postgres = Postgres()
        self.postgres.start()
        self.postgres.create("outage")
        self.way = Proxy(self.postgres.port)
        self.environ = {
            **backend.children(),
            "DATABASE_URL": self.postgres.url("outage", port=self.way.port),
            "A2A_APPS": "tests.support.execution.neighbours",
        }
        self.worker: Process = worker(
            "worker", "neighbours", environ=self.environ, directory=Path.cwd(), logs=logs
        )

    def run(self, *arguments: str) -> None:
        """Run python on this database."""
        subprocess.run([sys.executable, *arguments], env=self.environ, check=True)  # noqa: S603 - ours

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database says."""
        return self.postgres.execute(query, "outage")

    def states(self) -> set[str]:
        """How the tasks stand."""
        return {state for (state,) in self.rows("select distinct state from a2a_tasks_task")}

    def leases(self) -> int:
        """How many leases hold."""
        query = (
            "select count(*) from a2a_tasks_run where status = 'running' and lease_until > now()"
        )
        return int(self.rows(query)[0][0])

    def away(self, seconds: float) -> None:
        """Take the database away for so long."""
        self.postgres.stop("fast")
        threading.Event().wait(seconds)
        self.postgres.start()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host whose worker has begun all tasks that `send` makes."""
    made = Host(tmp_path)
    try:
        with made.way:
            made.run("-m", "django", "migrate", "-v", "0")
            made.worker.start()
            yield made
            made.worker.stop_at_once()
    finally:
        made.worker.stop_at_once()
        made.postgres.close()


def begin(host: Host, text: str, *, agent: str = "good", tasks: int = TASKS) -> int:
    """Have the worker begin its tasks; its pid."""
    host.run("-c", SEND.format(tasks=tasks, text=text, agent=agent))
    eventually(lambda: host.leases() == tasks, 60)
    return host.worker.pid


def test_three_restarts_of_ten_seconds_fail_no_task_whose_worker_lives(host: Host) -> None:
    pid = begin(host, "40")
    for _ in range(3):
        host.away(10)
        eventually(lambda: host.leases() == TASKS, 60)
    eventually(lambda: host.states() <= {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}, 180)
    assert host.states() == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(deaths), max(shared_deaths) from a2a_tasks_run") == [(0, 0)]
    assert host.worker.pid == pid, "the worker never died"


def test_an_outage_little_longer_than_a_lease_begins_nothing_anew(host: Host) -> None:
    begin(host, "20")
    host.away(7)
    eventually(lambda: host.states() == {"TASK_STATE_COMPLETED"}, 120)
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]


def test_with_the_database_60_ms_away_one_death_costs_100_runs_one_attempt(host: Host) -> None:
    """Each has an artifact that has not ended, which its next attempt has to know of."""
    begin(host, "20", agent="writer", tasks=100)
    eventually(lambda: host.rows("select count(*) from a2a_tasks_artifact") == [(100,)], 60)
    host.way.behave(Behaviour(latency=0.03))
    host.worker.kill()
    eventually(lambda: host.states() <= {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}, 240)
    assert host.states() == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt), max(deaths) from a2a_tasks_run") == [(2, 0)]
