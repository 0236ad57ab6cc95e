"""A real Celery worker: it is rung, it is stopped, and when it is killed another finishes its work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from a2a_tasks.caller import Scope
from a2a_tasks.models import Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel
from a2a_tasks.store.accept import accept
from a2a_tasks.store.records import Accepted
from tests.execution.waiting import eventually
from tests.processes import Child, celery_worker
from tests.store.world import everything, found, new, replayed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.backend("stack")]
DEMO = Scope("", "user:alice", "demo")
#: Hints only, and leases that end soon.
SHORT = {"A2A_LEASE_SECONDS": "1.5", "A2A_BEAT_SECONDS": "0.4", "A2A_POLL_SECONDS": "0.3"}


def asked(text: str, task: str = "task-1") -> Accepted:
    """A task for the demo agent, whose run waits for a worker."""
    return accept(new(task, text=text, scope=DEMO))


def state(task: str = "task-1") -> TaskState:
    return found(task, DEMO).state


def reached(expected: TaskState, task: str = "task-1", seconds: float = 30) -> None:
    """Wait until a task stands so."""
    eventually(lambda: state(task) is expected, seconds)


@contextmanager
def workers(count: int) -> Iterator[list[Child]]:
    """Workers of a test's own, with short leases."""
    with ExitStack() as stack:
        yield [stack.enter_context(celery_worker(n + 2, SHORT)) for n in range(count)]


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

    def test_a_cancel_reaches_the_agent_within_a_second(self) -> None:
        asked("sleep 600")
        reached(TaskState.WORKING)
        begun = time.monotonic()
        cancel.cancel(DEMO, "task-1")
        assert state() is TaskState.CANCELED
        assert Run.objects.get().status == RunStatus.CANCELED
        assert time.monotonic() - begun < 1

    def test_many_chunks_arrive_in_order(self) -> None:
        result = asked("chunks 500")
        reached(TaskState.COMPLETED)
        events = everything(result.task)
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert replayed(result.view, result.task) == found("task-1", DEMO).view


class TestDeaths:
    def test_what_a_killed_worker_left_is_finished_by_another(self) -> None:
        with workers(1) as (first,):
            asked("sleep 3")
            reached(TaskState.WORKING)
            holder = Run.objects.get().worker
            with workers_beside(3) as second:
                first.kill()
                reached(TaskState.COMPLETED, seconds=30)
                run = Run.objects.get()
                assert (run.attempt, run.status) == (2, RunStatus.ENDED)
                assert run.worker != holder
                assert second.process.poll() is None
        states = [event.state for event in everything(Task.objects.get().pk) if event.state]
        assert states.count(TaskState.COMPLETED) == 1
        assert states[-1] is TaskState.COMPLETED

    def test_a_worker_that_is_asked_to_end_gives_its_runs_back_untried(self) -> None:
        with workers(1) as (first,):
            asked("sleep 600")
            reached(TaskState.WORKING)
            first.stop(20)
            eventually(lambda: Run.objects.get().status == RunStatus.QUEUED, 10)
            run = Run.objects.get()
            assert (run.attempt, run.token) == (0, "")

    def test_a_stopped_agent_gives_its_word_to_the_log_of_the_worker(self) -> None:
        with workers(1) as (worker,):
            asked("sleep 600")
            reached(TaskState.WORKING)
            cancel.cancel(DEMO, "task-1")
            worker.wait_for(f"run {Run.objects.get().pk} ", 5)


@contextmanager
def workers_beside(number: int) -> Iterator[Child]:
    """One more worker."""
    with celery_worker(number, SHORT) as child:
        yield child
