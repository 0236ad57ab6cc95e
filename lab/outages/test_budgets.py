"""Budgets over hundreds of runs: they cost others nothing, let through what they allow, and forget nobody."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import (
    Budget,
    BudgetAction,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    Run,
    RunStatus,
    Task,
    Usage,
)
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import budgets
from a2a_tasks.store.accept import accept
from lab.faultlab import processes
from tests import backend
from tests.support.execution.waiting import eventually
from tests.support.store.world import new

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.backend("stack"),
    pytest.mark.timeout(500),
]
logger = logging.getLogger(__name__)
QUEUE = "neighbours"
MANY = 300


def make_worker(name: str, logs: Path) -> processes.Process:
    """A worker of the queue, started again whenever it dies."""
    environ = backend.children() | {
        "A2A_APPS": "tests.support.execution.neighbours",
        "A2A_CREDENTIAL_SECONDS": "1",
    }
    return processes.worker(name, QUEUE, environ=environ, directory=Path.cwd(), logs=logs)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[processes.Process]]:
    """Two workers."""
    made = [make_worker(name, tmp_path) for name in ("one", "two")]
    for worker in made:
        worker.start()
    yield made
    for worker in made:
        worker.stop()


def make_budget(limit: int, **about: Any) -> None:
    """A budget, before any work begins."""
    budgets.save(Budget(name="limit", limit=Decimal(limit), **about))


def send(slug: str, task: str, text: str) -> int:
    """A task whose run waits for the workers; returns its key."""
    scope = OwnerScope("", "user:alice", slug)
    return accept(new(task, text=text, scope=scope, queue=QUEUE)).task


def count(state: TaskState) -> int:
    """How many tasks of the spender have this state."""
    return Task.objects.filter(agent="spender", state=state).count()


def parked() -> int:
    """How many runs wait for a budget."""
    return Run.objects.filter(status=RunStatus.QUEUED, waits_for_budget__isnull=False).count()


def test_a_decision_about_five_lets_five_through_and_all_go_on_in_the_end(
    workers: list[processes.Process],
) -> None:
    make_budget(10, unit=BudgetUnit.CALLS, action=BudgetAction.ASK)
    for n in range(MANY):
        send("spender", f"task-{n}", "1")
    eventually(lambda: budgets.list_asking().exists() and parked() == MANY - 10, 60)
    assert (count(TaskState.COMPLETED), Usage.objects.count()) == (10, 10)
    use = BudgetUse.objects.get()
    budgets.allow(use.pk, Decimal(5))
    eventually(lambda: budgets.list_asking().exists() and parked() == MANY - 15, 60)
    assert (count(TaskState.COMPLETED), Usage.objects.count()) == (15, 15)
    budgets.allow(use.pk, Decimal(MANY))
    for worker in workers:
        worker.kill()
    eventually(lambda: count(TaskState.COMPLETED) == MANY, 200)


@pytest.mark.parametrize("text", ["1", "1 bare"])
def test_a_limit_of_ten_calls_is_ten_calls_of_ten_tasks(
    workers: list[processes.Process], text: str
) -> None:
    make_budget(10, unit=BudgetUnit.CALLS, action=BudgetAction.REFUSE)
    for n in range(60):
        send("spender", f"task-{n}", text)
    eventually(lambda: not Task.objects.exclude(state__in=TERMINAL).exists(), 60)
    assert (count(TaskState.COMPLETED), count(TaskState.FAILED)) == (10, 50)
    assert Usage.objects.count() == 10


def measure(name: str, seconds: int) -> tuple[float, float]:
    """Seconds of a small task of another agent beside many that sleep, and transactions a second."""
    sleepers = [send("good", f"{name}-{n}", str(seconds)) for n in range(MANY)]
    running = Run.objects.filter(status=RunStatus.RUNNING, task__in=sleepers)
    eventually(lambda: running.count() == MANY, 60)
    before, taken = count_transactions(), list[float]()
    while running.count() == MANY:
        begun = time.monotonic()
        finish("writer", f"{name}-small-{len(taken)}")
        taken.append(time.monotonic() - begun)
    made = count_transactions() - before
    eventually(lambda: not running.exists(), 60)
    return statistics.quantiles(taken, n=4)[0], made / sum(taken)


def finish(slug: str, name: str) -> None:
    """A small task, from its beginning to its end."""
    task = Task.objects.filter(pk=send(slug, name, "0"), state__in=TERMINAL)
    eventually(task.exists, 30)


def count_transactions() -> int:
    """The transactions of the database until now."""
    statement = "select xact_commit from pg_stat_database where datname = current_database()"
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def is_known() -> bool:
    """Do both workers count the work of new tasks? One that does not leaves some of these out."""
    before, sent = BudgetUse.objects.count(), 8
    for _ in range(sent):
        finish("good", f"probe-{time.monotonic()}")
    return BudgetUse.objects.count() == before + sent


def test_a_budget_of_seconds_costs_others_nothing(workers: list[processes.Process]) -> None:
    before = measure("before", 30)
    make_budget(3600, unit=BudgetUnit.SECONDS, share=BudgetShare.TASK, agent="good")
    eventually(is_known, 60)
    beside = measure("beside", 70)
    assert BudgetUse.objects.filter(used__gte=60).count() == MANY
    budgets.delete(Budget.objects.get())
    after = measure("after", 30)
    logger.info("seconds of small tasks, transactions a second: %s, %s, %s", before, beside, after)
    # Other work on the machine comes and goes: it is compared with both.
    assert beside[0] <= 1.1 * max(before[0], after[0])
