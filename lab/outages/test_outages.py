"""A database that goes away or is far away is nobody's death: a PostgreSQL of the tests' own, and a real worker on it."""

from __future__ import annotations

import pytest

from lab.outages.host import Host
from tests.support.execution.waiting import eventually
from tests.support.proxy import Behaviour

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(500)]
TASKS = 20


def test_three_restarts_of_ten_seconds_fail_no_task_whose_worker_lives(host: Host) -> None:
    pid = host.begin("40", tasks=TASKS)
    for _ in range(3):
        host.away(10)
        eventually(lambda: host.leases() == TASKS, 60)
    eventually(lambda: host.states() <= {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}, 180)
    assert host.states() == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(deaths), max(shared_deaths) from a2a_tasks_run") == [(0, 0)]
    assert host.worker.pid == pid, "the worker never died"


def test_an_outage_little_longer_than_a_lease_begins_nothing_anew(host: Host) -> None:
    host.begin("20", tasks=TASKS)
    host.away(7)
    eventually(lambda: host.states() == {"TASK_STATE_COMPLETED"}, 120)
    assert host.rows("select max(attempt) from a2a_tasks_run") == [(1,)]


def test_with_the_database_60_ms_away_one_death_costs_100_runs_one_attempt(host: Host) -> None:
    """Each has an artifact that has not ended, which its next attempt has to know of."""
    host.begin("20", agent="writer", tasks=100)
    eventually(lambda: host.rows("select count(*) from a2a_tasks_artifact") == [(100,)], 60)
    host.way.behave(Behaviour(latency=0.03))
    host.worker.kill()
    eventually(lambda: host.states() <= {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED"}, 240)
    assert host.states() == {"TASK_STATE_COMPLETED"}
    assert host.rows("select max(attempt), max(deaths) from a2a_tasks_run") == [(2, 0)]
