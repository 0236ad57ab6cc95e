"""The watchdog: a worker that hears its bell no more notices, connects anew, and in the end makes way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from a2a_project.celery import app
from a2a_tasks.caller import Scope
from a2a_tasks.execution.jobs import carry_due_runs
from a2a_tasks.execution.watchdog import Watchdog
from a2a_tasks.management.commands import stack
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from tests.integration.execution.line import Line
from tests.support.execution.waiting import eventually
from tests.support.processes import Child, python
from tests.support.store.world import found, new

DEMO = Scope("", "user:alice", "demo")
#: A queue no other worker of these tests serves.
QUEUE = "kennel"
SECONDS = 4.0
NAME = "watched@here"
ENVIRON = {
    "A2A_WATCHDOG_SECONDS": str(SECONDS),
    "A2A_LEASE_SECONDS": "1.5",
    "A2A_BEAT_SECONDS": "0.4",
    "A2A_POLL_SECONDS": "0.3",
    "A2A_DRAIN_SECONDS": "0.5",
}
ANEW = "connecting anew"
AWAY = "the broker does not answer"


class Hands:
    """What a watchdog does, written down."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.broker = self.idle = self.connected = True
        self.at_work = False
        self.dog = Watchdog(
            60,
            ring=self.ring,
            busy=lambda: self.at_work,
            connected=lambda: self.connected,
            reconnect=lambda: self.done.append("reconnect"),
            leave=self.leave,
        )

    def ring(self) -> None:
        if not self.broker:
            raise ConnectionRefusedError("no broker")

    def leave(self) -> bool:
        self.done.append("leave" if self.idle else "stay")
        return self.idle

    def look(self, *minutes: float) -> list[str]:
        """Look at these moments; returns what was done."""
        self.done = []
        for minute in minutes:
            self.dog.look(minute * 60)
        return self.done


class TestLooking:
    def test_a_bell_that_is_heard_is_left_alone(self) -> None:
        hands = Hands()
        for minute in range(10):
            hands.dog.hear()
            assert hands.look(minute) == []

    def test_a_silent_one_is_connected_anew_once_and_then_the_worker_leaves(self) -> None:
        hands = Hands()
        hands.dog.hear()
        assert hands.look(0, 1, 1.5) == []
        assert hands.look(2, 2.5) == ["reconnect"]
        assert hands.look(3) == ["leave"]

    def test_a_worker_that_carries_runs_stays(self) -> None:
        hands = Hands()
        hands.idle = False
        hands.dog.hear()
        assert hands.look(0, 1, 2, 3, 4) == ["reconnect", "stay", "stay"]

    def test_one_that_never_heard_anything_stays_since_another_would_not_either(self) -> None:
        hands = Hands()
        assert hands.look(0, 1, 2, 3, 4, 5) == ["reconnect"]

    def test_a_broker_that_is_away_is_waited_for_and_its_return_begins_the_time_anew(self) -> None:
        hands = Hands()
        hands.dog.hear()
        assert hands.look(0, 1) == []
        hands.broker = False
        assert hands.look(*range(2, 100)) == []
        hands.broker = True
        assert hands.look(100, 100.5) == []
        assert hands.look(101) == ["reconnect"]

    def test_celery_gets_the_time_it_sleeps_between_two_attempts_to_connect(self) -> None:
        hands = Hands()
        hands.connected = False
        hands.dog.hear()
        assert hands.look(0, 1, 2, 2.5) == []
        assert hands.look(3, 4) == ["reconnect", "leave"]

    def test_a_bell_that_celery_has_just_connected_to_gets_its_time(self) -> None:
        hands = Hands()
        hands.connected = False
        assert hands.look(0, 1, 1.5) == []
        hands.connected = True
        assert hands.look(2, 2.5) == []
        assert hands.look(3) == ["reconnect"]

    def test_a_worker_whose_threads_are_all_at_work_is_not_deaf(self) -> None:
        hands = Hands()
        hands.at_work = True
        assert hands.look(*range(100)) == []

    def test_when_it_is_heard_again_all_begins_anew(self) -> None:
        hands = Hands()
        assert hands.look(0, 1) == ["reconnect"]
        hands.dog.hear()
        assert hands.look(1.5, 2, 2.5) == []
        assert hands.look(3) == ["reconnect"]


def carried(task: str) -> Run:
    """The run of a task that has come to its end."""
    eventually(lambda: found(task, DEMO).state is TaskState.COMPLETED, 60)
    return Run.objects.get(task__public_id=task)


def ask(text: str, task: str) -> None:
    """A task whose run waits for the watched worker."""
    accept(new(task, text=text, scope=DEMO, queue=QUEUE))


def rings() -> int:
    """How often the worker's bell was heard, says the worker; 0 also if it does not hear the question."""
    told = app.control.inspect([NAME], timeout=2).stats() or {}
    return int(told.get(NAME, {}).get("total", {}).get(carry_due_runs.name, 0))


def rung_and_heard(times: int) -> bool:
    """Ring (a ring into a dead line is lost), and say whether the worker has heard more than so many."""
    carry_due_runs.apply_async(queue=QUEUE, expires=60)
    return rings() > times


@contextmanager
def watched(broker: str) -> Iterator[Child]:
    """A worker of a test's own, with that broker."""
    _, *arguments = stack.workers(1)[-1].command
    arguments[arguments.index("-A") + 1] = "a2a_project"
    arguments += ["-Q", QUEUE]
    arguments[arguments.index("-n") + 1] = NAME
    with python(arguments, {**ENVIRON, "CELERY_BROKER_URL": broker}) as child:
        child.wait_for(" ready.")
        yield child


@pytest.fixture
def line() -> Iterator[Line]:
    """A line to the broker of this run."""
    broker = urlsplit(os.environ["CELERY_BROKER_URL"])
    with Line(broker.hostname or "127.0.0.1", broker.port or 6379) as found:
        yield found


@pytest.fixture
def worker(line: Line) -> Iterator[Child]:
    """A worker whose broker is at the end of the line."""
    broker = urlsplit(os.environ["CELERY_BROKER_URL"])
    with watched(broker._replace(netloc=f"127.0.0.1:{line.port}").geturl()) as child:
        yield child


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
@pytest.mark.timeout(240)
class TestAWorker:
    def test_whose_line_fell_silent_hears_its_bell_again_and_loses_nothing(
        self, worker: Child, line: Line
    ) -> None:
        ask("sleep 20", "long")  # so that it may not leave
        eventually(lambda: rings() == 1)
        line.silence()
        ask("echo by polling", "meanwhile")
        assert carried("meanwhile").attempt == 1
        eventually(lambda: rung_and_heard(1), 90)
        assert carried("long").attempt == 1
        assert worker.process.poll() is None

    def test_whose_line_is_cut_again_and_again_hears_its_bell_again(
        self, worker: Child, line: Line
    ) -> None:
        for n in range(10):
            line.cut()
            ask("echo hello", f"task-{n}")
            assert carried(f"task-{n}").attempt == 1
        eventually(lambda: rung_and_heard(10), 90)
        assert worker.process.poll() is None

    def test_whose_broker_is_away_waits_and_works_by_polling(
        self, worker: Child, line: Line
    ) -> None:
        line.close()
        ask("echo by polling", "meanwhile")
        assert carried("meanwhile").attempt == 1
        eventually(lambda: worker.log.count(AWAY) > 2, 90)  # each takes some seconds
        assert worker.process.poll() is None
        line.open()
        eventually(lambda: rung_and_heard(0), 90)
        assert worker.process.poll() is None
        assert ANEW not in worker.log

    def test_that_consumes_nothing_though_connected_ends_for_another_to_begin(
        self, worker: Child
    ) -> None:
        ask("sleep 15", "long")
        eventually(lambda: found("long", DEMO).state is TaskState.WORKING)
        for queue in (QUEUE, f"watchdog.{NAME}"):
            app.control.cancel_consumer(queue, destination=[NAME], reply=True, timeout=10)
        worker.wait_for("work is found by polling")
        assert Run.objects.get().status == RunStatus.RUNNING
        assert carried("long").attempt == 1
        assert worker.process.wait(30) == 1
        assert "this worker ends" in worker.log
