"""A real Celery worker: it is rung, it is stopped, and when it is killed another finishes its work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from a2a_tasks.caller import Scope
from a2a_tasks.management.commands import stack
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel
from a2a_tasks.store.accept import accept
from a2a_tasks.store.records import Accepted
from tests.support.execution.waiting import eventually
from tests.support.processes import Child, python
from tests.support.store.world import everything, found, new, replayed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
DEMO = Scope("", "user:alice", "demo")
#: A queue no other worker of these tests serves.
QUEUE = "deaths"
#: Leases that end soon after their process.
SHORT = {
    "A2A_LEASE_SECONDS": "1.5",
    "A2A_BEAT_SECONDS": "0.4",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_DRAIN_SECONDS": "0.5",
}
#: Nothing is found by looking, as long as a test waits.
SELDOM = {
    **SHORT,
    "A2A_LEASE_SECONDS": "180",
    "A2A_BEAT_SECONDS": "60",
    "A2A_POLL_SECONDS": "60",
}


def asked(text: str, task: str = "task-1", **about: Any) -> Accepted:
    """A task for the demo agent, whose run waits for a worker."""
    return accept(new(task, text=text, scope=DEMO, **about))


def state(task: str = "task-1") -> TaskState:
    return found(task, DEMO).state


def reached(expected: TaskState, task: str = "task-1", seconds: float = 30) -> None:
    """Wait until a task stands so."""
    eventually(lambda: state(task) is expected, seconds)


@contextmanager
def mortal(number: int = 2, environ: Mapping[str, str] = SHORT) -> Iterator[Child]:
    """A worker of a test's own, on a queue of its own, with short leases."""
    _, *arguments = stack.workers(number)[-1].command
    arguments[arguments.index("-A") + 1] = "a2a_project"
    arguments += ["-Q", QUEUE]
    with python(arguments, environ) as child:
        child.wait_for(f"carrying runs of {QUEUE}")
        yield child


@pytest.mark.usefixtures("worker")
class TestWorker:
    def test_a_run_is_carried(self) -> None:
        result = asked("echo hello")
        reached(TaskState.COMPLETED)
        assert replayed(result.view, result.task) == found("task-1", DEMO).view
        run = Run.objects.get()
        assert (run.status, run.attempt, run.token) == (RunStatus.ENDED, 1, "")

    def test_many_runs_wait_beside_each_other(self) -> None:
        for n in range(50):
            asked("sleep 1", f"task-{n}")
        eventually(lambda: Task.objects.filter(state=TaskState.COMPLETED).count() == 50, 30)
        assert len(set(Run.objects.values_list("worker", flat=True))) == 1

    def test_a_cancel_reaches_the_agent(self, worker: Child) -> None:
        asked("sleep 600")
        reached(TaskState.WORKING)
        cancel.cancel(DEMO, "task-1")
        assert state() is TaskState.CANCELED
        worker.wait_for(f"run {Run.objects.get().pk} was stopped", 20)

    def test_many_chunks_arrive_in_order(self) -> None:
        result = asked("chunks 500")
        reached(TaskState.COMPLETED)
        events = everything(result.task)
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert replayed(result.view, result.task) == found("task-1", DEMO).view


class TestDeaths:
    def test_what_a_killed_worker_left_is_finished_by_another(self) -> None:
        with mortal(2) as first:
            result = asked("sleep 3", queue=QUEUE)
            reached(TaskState.WORKING)
            holder = Run.objects.get().worker
            first.kill()
            with mortal(3):
                reached(TaskState.COMPLETED)
        run = Run.objects.get()
        assert (run.attempt, run.status) == (2, RunStatus.ENDED)
        assert run.worker != holder
        ends = [event.state for event in everything(result.task) if event.state in TERMINAL]
        assert ends == [TaskState.COMPLETED]
        assert replayed(result.view, result.task) == found("task-1", DEMO).view

    def test_a_worker_that_is_asked_to_end_gives_its_runs_back_untried(self) -> None:
        with mortal() as worker:
            asked("sleep 600", queue=QUEUE)
            reached(TaskState.WORKING)
            assert worker.stop(30) == 0
            run = Run.objects.get()
            assert (run.status, run.attempt, run.token) == (RunStatus.QUEUED, 0, "")

    def test_a_cancel_reaches_the_agent_by_hint(self) -> None:
        with mortal(environ=SELDOM) as worker:
            asked("sleep 600", queue=QUEUE)
            reached(TaskState.WORKING)
            cancel.cancel(DEMO, "task-1")
            worker.wait_for(f"run {Run.objects.get().pk} was stopped", 20)


class TestOtherLeases:
    def test_workers_of_two_deploys_leave_each_others_runs_alone(self) -> None:
        one = {**SHORT, "A2A_RUN_SLOTS": "1"}
        other = {**one, "A2A_LEASE_SECONDS": "60", "A2A_BEAT_SECONDS": "20"}
        with mortal(2, one), mortal(3, other):
            for task in ("task-1", "task-2"):
                asked("sleep 4", task, queue=QUEUE)  # more than two of the short leases
            for task in ("task-1", "task-2"):
                reached(TaskState.COMPLETED, task)
        assert list(Run.objects.values_list("attempt", flat=True)) == [1, 1]
        assert set(Run.objects.values_list("lease_seconds", flat=True)) == {1.5, 60.0}

    def test_a_dead_workers_run_is_taken_over_when_its_own_lease_ends(self) -> None:
        with mortal(2) as first:
            asked("sleep 3", queue=QUEUE)
            reached(TaskState.WORKING)
            other = {**SHORT, "A2A_LEASE_SECONDS": "600", "A2A_BEAT_SECONDS": "200"}
            first.kill()
            with mortal(3, other):
                reached(TaskState.COMPLETED)
        assert Run.objects.get().attempt == 2


class TestQueues:
    def test_a_worker_that_is_told_no_queues_takes_from_all_that_agents_name(self) -> None:
        _, *arguments = stack.workers(5)[-1].command
        arguments[arguments.index("-A") + 1] = "a2a_project"
        with python(
            arguments, {**SHORT, "A2A_APPS": "tests.support.execution.neighbours"}
        ) as child:
            child.wait_for("carrying runs of agents, neighbours")
        with python(arguments, {**SHORT, "A2A_QUEUES": "night,day"}) as child:
            child.wait_for("carrying runs of day, night")
