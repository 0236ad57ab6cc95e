"""Real workers die and are deployed: others finish what they held, and nobody takes what is held."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from a2a_tasks.store.records import Accepted
from tests.support.execution.waiting import eventually
from tests.support.execution.workers import SHORT, own_worker
from tests.support.store.world import everything, found, new, replayed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
DEMO = OwnerScope("", "user:alice", "demo")
#: A queue no other worker of these tests serves.
QUEUE = "deaths"


def asked(text: str, task: str = "task-1", **about: Any) -> Accepted:
    """A task for the demo agent, whose run waits for a worker."""
    return accept(new(task, text=text, scope=DEMO, **about))


def reached(expected: TaskState, task: str = "task-1", seconds: float = 30) -> None:
    """Wait until a task stands so."""
    eventually(lambda: found(task, DEMO).state is expected, seconds)


class TestDeaths:
    def test_what_a_killed_worker_left_is_finished_by_another(self) -> None:
        with own_worker(QUEUE, 2) as first:
            result = asked("sleep 3", queue=QUEUE)
            reached(TaskState.WORKING)
            holder = Run.objects.get().worker
            first.kill()
            with own_worker(QUEUE, 3):
                reached(TaskState.COMPLETED)
        run = Run.objects.get()
        assert (run.attempt, run.status) == (2, RunStatus.ENDED)
        assert run.worker != holder
        ends = [event.state for event in everything(result.task) if event.state in TERMINAL]
        assert ends == [TaskState.COMPLETED]
        assert replayed(result.view, result.task) == found("task-1", DEMO).view


class TestOtherLeases:
    def test_workers_of_two_deploys_leave_each_others_runs_alone(self) -> None:
        one = {**SHORT, "A2A_RUN_SLOTS": "1"}
        other = {**one, "A2A_LEASE_SECONDS": "60", "A2A_BEAT_SECONDS": "20"}
        with own_worker(QUEUE, 2, one), own_worker(QUEUE, 3, other):
            for task in ("task-1", "task-2"):
                asked("sleep 4", task, queue=QUEUE)  # more than two of the short leases
            for task in ("task-1", "task-2"):
                reached(TaskState.COMPLETED, task)
        assert list(Run.objects.values_list("attempt", flat=True)) == [1, 1]
        assert set(Run.objects.values_list("lease_seconds", flat=True)) == {1.5, 60.0}

    def test_a_dead_workers_run_is_taken_over_when_its_own_lease_ends(self) -> None:
        with own_worker(QUEUE, 2) as first:
            asked("sleep 3", queue=QUEUE)
            reached(TaskState.WORKING)
            other = {**SHORT, "A2A_LEASE_SECONDS": "600", "A2A_BEAT_SECONDS": "200"}
            first.kill()
            with own_worker(QUEUE, 3, other):
                reached(TaskState.COMPLETED)
        assert Run.objects.get().attempt == 2
