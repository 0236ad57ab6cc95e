"""SIGTERM ends a real worker in time whatever holds it, and its runs begin elsewhere at once, as if never begun."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.db.models import Q

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from lab.faultlab.redis_server import RedisServer
from tests.support.execution.waiting import eventually
from tests.support.processes import Child, python
from tests.support.procfile import worker_arguments
from tests.support.store.world import new

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
#: A queue no other worker of these tests serves.
QUEUE = "endings"
DRAIN = 1.0
#: Seconds after the drain by which the process is gone: 3, and more for a busy machine.
LATE = 20.0
#: Nothing is found by looking: what happens at once, happens by the bell.
ENVIRON = {
    "A2A_APPS": "examples.demo,tests.journeys.agents_app",
    "A2A_DRAIN_SECONDS": str(DRAIN),
    "A2A_POLL_SECONDS": "60",
}


@contextmanager
def worker(number: int = 1, **environ: str) -> Iterator[Child]:
    """A worker of a test's own, on a queue of its own."""
    arguments = [*worker_arguments("worker", f"worker{number}"), "-Q", QUEUE]
    with python(arguments, {**ENVIRON, **environ}) as child:
        child.wait_for(" ready.")
        yield child


def asked(number: int, text: str, agent: str = "demo") -> None:
    """So many tasks, whose runs are under way when this returns."""
    for n in range(number):
        accept(new(f"task-{n}", text=text, scope=OwnerScope("", "user:alice", agent), queue=QUEUE))
    eventually(lambda: Task.objects.filter(state=TaskState.WORKING).count() == number, 40)


def ended(child: Child) -> float:
    """Ask it to end; the seconds it took. It must end by itself, with code 0."""
    begun = time.monotonic()
    child.process.send_signal(signal.SIGTERM)
    assert child.process.wait(60) == 0, child.log
    return time.monotonic() - begun


def untried() -> int:
    """Runs that are as if never begun."""
    return Run.objects.filter(status=RunStatus.QUEUED, attempt=0, token="").count()


def test_an_idle_worker_ends_at_once() -> None:
    with worker() as child:
        assert ended(child) < LATE


def test_what_ends_within_the_drain_ends() -> None:
    with worker(A2A_DRAIN_SECONDS="30") as child:
        asked(3, "sleep 2")
        ended(child)
    assert Run.objects.filter(status=RunStatus.ENDED, attempt=1).count() == 3


def test_a_thousand_waiting_agents_are_handed_back_in_time() -> None:
    with worker() as child:
        asked(1000, "sleep 600")
        assert ended(child) < DRAIN + LATE
    assert untried() == 1000


def test_a_run_handed_back_begins_elsewhere_at_once_and_is_not_counted() -> None:
    with worker(1) as first, worker(2) as second:
        asked(20, "sleep 600")
        here = f":{first.process.pid}"
        ended(first)
        eventually(lambda: Run.objects.filter(status=RunStatus.RUNNING).count() == 20, 30)
        runs = list(Run.objects.values_list("worker", "attempt"))
        assert {attempt for _, attempt in runs} == {1}
        assert not any(name.endswith(here) for name, _ in runs)
        second.kill()


def test_no_run_is_claimed_once_it_is_asked_to_end() -> None:
    with worker(A2A_DRAIN_SECONDS="3", A2A_POLL_SECONDS="0.1") as child:
        asked(1, "sleep 600")
        child.process.send_signal(signal.SIGTERM)
        child.wait_for("Warm shutdown")
        accept(new("late", text="echo x", scope=OwnerScope("", "user:alice", "demo"), queue=QUEUE))
        assert child.process.wait(60) == 0
    assert Run.objects.get(task__public_id="late").started_at is None


def test_an_agent_asleep_in_a_thread_does_not_hold_the_process() -> None:
    with worker() as child:
        asked(1, "x", agent="thread-sleeper")
        assert ended(child) < DRAIN + LATE
    assert untried() == 1


@pytest.fixture
def broker() -> Iterator[RedisServer]:
    """A broker of the test's own, to be hurt."""
    with RedisServer() as server:
        yield server


def test_a_broker_that_has_gone_does_not_hold_the_process(broker: RedisServer) -> None:
    with worker(CELERY_BROKER_URL=broker.url(), A2A_POLL_SECONDS="0.3") as child:
        asked(2, "sleep 600")
        broker.kill()
        assert ended(child) < DRAIN + LATE
    assert untried() == 2


def test_a_broker_that_is_silent_does_not_hold_the_process(broker: RedisServer) -> None:
    with worker(CELERY_BROKER_URL=broker.url(), A2A_POLL_SECONDS="0.3") as child:
        asked(2, "sleep 600")
        broker.signal(signal.SIGSTOP)
        try:
            assert ended(child) < DRAIN + LATE
        finally:
            broker.signal(signal.SIGCONT)
    assert untried() == 2


def test_a_worker_that_starts_without_a_broker_carries_runs(broker: RedisServer) -> None:
    broker.kill()
    arguments = [*worker_arguments("worker", "worker1"), "-Q", QUEUE]
    environ = {**ENVIRON, "CELERY_BROKER_URL": broker.url()}
    accept(new("task-0", text="echo x", scope=OwnerScope("", "user:alice", "demo"), queue=QUEUE))
    with python(arguments, environ) as child:
        done = Q(status=RunStatus.ENDED, attempt=1)
        eventually(lambda: Run.objects.filter(done).exists(), 30)
        assert ended(child) < DRAIN + LATE
