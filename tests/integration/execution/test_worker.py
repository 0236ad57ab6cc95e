"""A real Celery worker: it is rung, and it is stopped. How workers die: lab/outages/test_workers.py."""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

import pytest

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import (
    PARKED,
    Budget,
    BudgetAction,
    BudgetUnit,
    BudgetUse,
    Run,
    RunStatus,
    Task,
    Usage,
)
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import budgets, cancel
from a2a_tasks.store.accept import accept
from a2a_tasks.store.records import Accepted
from tests.support.execution.neighbours.agents import Spender
from tests.support.execution.waiting import eventually
from tests.support.execution.workers import SHORT, own_worker
from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments
from tests.support.store.world import everything, found, new, replayed
from tests.support.thorough import thorough

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
DEMO = OwnerScope("", "user:alice", "demo")
#: A queue no other worker of these tests serves.
QUEUE = "deaths"
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


class TestABudget:
    """It is shared by the processes of all workers."""

    @pytest.mark.parametrize("action", [BudgetAction.REFUSE, thorough(BudgetAction.ASK)])
    def test_is_overspent_by_at_most_one_call_of_each_run(self, action: BudgetAction) -> None:
        limit, count, calls, scope = 40, 64, 3, OwnerScope("", "user:alice", Spender.slug)
        budget = Budget(name="b", unit=BudgetUnit.CALLS, limit=Decimal(limit), action=action)
        budgets.save(budget)
        for n in range(count):
            accept(new(f"task-{n}", text=f"{calls}", scope=scope, queue=Spender.queue))
        apps = {"A2A_APPS": "tests.support.execution.neighbours"}
        environ = {**SHORT, "A2A_LEASE_SECONDS": "60", **apps}
        carried = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
        with contextlib.ExitStack() as workers:
            for number in (1, 2):
                workers.enter_context(own_worker(Spender.queue, number, environ))
            moving = carried.exclude(round=PARKED)
            eventually(lambda: not moving.exists() and BudgetUse.objects.exists(), 60)
            use = BudgetUse.objects.get()
            assert limit <= use.used <= limit + count - 1
            assert Usage.objects.count() == use.used
            if action == BudgetAction.REFUSE:
                assert not carried.exists()
                return
            assert carried.filter(waits_for_budget=use.pk).count() == carried.count() > 0
            budgets.allow(use.pk, Decimal(count * calls))
            eventually(lambda: not carried.exists(), 60)
        assert Usage.objects.count() == count * calls  # no call was repeated
        assert not Task.objects.exclude(state=TaskState.COMPLETED.value).exists()

    def test_holds_a_run_up_also_after_its_worker_was_killed(self) -> None:
        scope = OwnerScope("", "user:alice", Spender.slug)
        budgets.save(
            Budget(name="b", unit=BudgetUnit.CALLS, limit=Decimal(3), action=BudgetAction.ASK)
        )
        accept(new("task-1", text="5 bare", scope=scope, queue=Spender.queue))
        environ = {**SHORT, "A2A_APPS": "tests.support.execution.neighbours"}
        with own_worker(Spender.queue, 1, environ) as worker:
            eventually(lambda: budgets.list_asking().exists(), 60)
            assert Run.objects.get().status == RunStatus.RUNNING  # its calls would be repeated
            worker.kill()
        with own_worker(Spender.queue, 2, environ):
            eventually(lambda: Run.objects.filter(round=PARKED).exists(), 60)
            assert Usage.objects.count() == 4  # without steps, the call after the limit shows it
            budgets.allow(BudgetUse.objects.get().pk, Decimal(100))
            eventually(lambda: Task.objects.get().state == TaskState.COMPLETED.value, 60)
        assert Usage.objects.count() == BudgetUse.objects.get().used == 4 + 5


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
        eventually(lambda: Task.objects.filter(state=TaskState.COMPLETED).count() == 50, 60)
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


class TestAWorkerOfATestsOwn:
    def test_a_worker_that_is_asked_to_end_gives_its_runs_back_untried(self) -> None:
        with own_worker(QUEUE) as worker:
            asked("sleep 600", queue=QUEUE)
            reached(TaskState.WORKING)
            assert worker.stop(30) == 0
            run = Run.objects.get()
            assert (run.status, run.attempt, run.token) == (RunStatus.QUEUED, 0, "")

    @pytest.mark.thorough
    def test_a_cancel_reaches_the_agent_by_hint(self) -> None:
        with own_worker(QUEUE, environ=SELDOM) as worker:
            asked("sleep 600", queue=QUEUE)
            reached(TaskState.WORKING)
            cancel.cancel(DEMO, "task-1")
            worker.wait_for(f"run {Run.objects.get().pk} was stopped", 20)


class TestQueues:
    @pytest.mark.parametrize(
        ("variables", "taken"),
        [
            ({"A2A_APPS": "tests.support.execution.neighbours"}, "agents, neighbours"),
            thorough({"A2A_QUEUES": "night,day"}, "day, night"),
        ],
    )
    def test_a_worker_that_is_told_no_queues_takes_from_all_that_agents_or_settings_name(
        self, variables: dict[str, str], taken: str
    ) -> None:
        with python(worker_arguments("worker", "worker5"), {**SHORT, **variables}) as child:
            child.wait_for(f"worker started, queues: {taken}")
