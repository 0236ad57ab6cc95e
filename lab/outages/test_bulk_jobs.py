"""A bulk job goes on when the database comes back, and counts each task once."""

from __future__ import annotations

import pytest

from lab.outages.host import Host
from tests.support.execution.waiting import eventually

pytestmark = [pytest.mark.backend("stack"), pytest.mark.timeout(900)]
TASKS = 500
#: Makes tasks that no worker takes, and a job that cancels them.
BEGIN = f"""
import django
django.setup()
from django.contrib.auth.models import User
from a2a_console.bulk import jobs
from a2a_console.bulk.actions import Choice
from a2a_console.search.selection import Selection
from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.accept import accept
from tests.support.store.world import new
scope = OwnerScope("", "user:alice", "good")
for number in range({TASKS}):
    accept(new(f"task-{{number}}", text="1", scope=scope, queue="nobody"))
choice = Choice(selection=Selection(), found={TASKS})
jobs.begin("cancel", choice, user=User.objects.create_superuser("root"), nonce="once")
"""
JOB = "select state, done, failed from a2a_tasks_bulkjob"
RESULTS = "select count(*), count(distinct task), bool_and(ok) from a2a_tasks_bulkresult"


def test_a_job_outlives_a_database_that_goes_away_in_the_middle(host: Host) -> None:
    host.run("-c", BEGIN)
    pid = host.worker.pid
    for part in (0.1, 0.4):
        eventually(lambda part=part: host.rows(JOB)[0][1] >= part * TASKS, 300)  # type: ignore[misc]
        host.away(5)
    eventually(lambda: host.rows(JOB)[0][0] == "ended", 400)
    assert host.rows(JOB) == [("ended", TASKS, 0)]
    assert host.rows(RESULTS) == [(TASKS, TASKS, True)]
    assert host.states() == {"TASK_STATE_CANCELED"}
    assert host.worker.pid == pid, "the worker never died"
