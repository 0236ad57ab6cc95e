"""A worker at default settings, and a PostgreSQL of its own that can be hurt."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.faultlab.postgres import Postgres
from lab.faultlab.processes import Process, worker
from tests import backend
from tests.support.execution.waiting import eventually
from tests.support.proxy import Proxy

__all__ = ["ENDED", "Host"]

ENDED = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"}
SEND = """
import sys, django
django.setup()
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.accept import accept
from tests.support.store.world import new
agent, text, *names = sys.argv[1:]
for name in names:
    accept(new(name, text=text, scope=OwnerScope("", "user:alice", agent), queue="neighbours"))
"""


class Host:
    """A worker of the agents in `tests/support/execution/neighbours`, and the database it works on."""

    def __init__(
        self,
        logs: Path,
        *,
        settings: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are PostgreSQL's, `environ` the host's."""
        self.postgres = Postgres(dict(settings or {}))
        self.postgres.start()
        self.postgres.create("outage")
        self.way = Proxy(self.postgres.port)
        self.environ = {
            **backend.children(),
            "DATABASE_URL": self.postgres.url("outage", port=self.way.port),
            "A2A_APPS": "tests.support.execution.neighbours",
            **(environ or {}),
        }
        self.logs = logs
        self.worker: Process = self.a_worker("worker")

    def a_worker(self, name: str) -> Process:
        """One more worker, not started."""
        return worker(
            name, "neighbours", environ=self.environ, directory=Path.cwd(), logs=self.logs
        )

    def run(self, *arguments: str) -> str:
        """Run python on this database; what it printed."""
        done = subprocess.run(  # noqa: S603 - ours
            [sys.executable, *arguments],
            env=self.environ,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def send(self, agent: str, text: str, *tasks: str) -> None:
        """Accept tasks of these names for an agent."""
        self.run("-c", SEND, agent, text, *tasks)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the database says."""
        return self.postgres.execute(query, "outage")

    def states(self, names: str = "%") -> set[str]:
        """How the tasks of such names stand."""
        found = f"select distinct state from a2a_tasks_task where public_id like '{names}'"  # noqa: S608
        return {state for (state,) in self.rows(found)}

    def leases(self) -> int:
        """How many leases hold."""
        query = (
            "select count(*) from a2a_tasks_run where status = 'running' and lease_until > now()"
        )
        return int(self.rows(query)[0][0])

    def begin(self, text: str, *, agent: str = "good", tasks: int = 20) -> int:
        """Have the worker begin so many tasks; its pid."""
        self.send(agent, text, *(f"task-{n}" for n in range(tasks)))
        eventually(lambda: self.leases() == tasks, 60)
        return self.worker.pid

    def away(self, seconds: float) -> None:
        """Take the database away for so long."""
        self.postgres.stop("fast")
        threading.Event().wait(seconds)
        self.postgres.start()

    def start(self) -> None:
        """Make the tables and start the worker."""
        self.run("-m", "django", "migrate", "-v", "0")
        self.worker.start()

    def close(self) -> None:
        """End all of it."""
        self.worker.stop_at_once()
        self.way.close()
        self.postgres.close()
