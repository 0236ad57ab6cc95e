"""The watchdog of a real worker: its line falls silent, is cut, its broker is away, it consumes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from a2a_project.celery import app
from a2a_tasks.execution.jobs import carry_due_runs
from a2a_tasks.models import Run, RunStatus
from a2a_tasks.protocol.values import TaskState
from tests.campaigns.outages.line import Line
from tests.support.execution.waiting import eventually
from tests.support.execution.watched import DEMO, NAME, QUEUE, ask, carried, watched
from tests.support.processes import Child
from tests.support.store.world import found

SECONDS = 4.0
ANEW = "connecting anew"
AWAY = "the broker does not answer"


def rings() -> int:
    """How often the worker's bell was heard, says the worker; 0 also if it does not hear the question."""
    told = app.control.inspect([NAME], timeout=2).stats() or {}
    return int(told.get(NAME, {}).get("total", {}).get(carry_due_runs.name, 0))


def rung_and_heard(times: int) -> bool:
    """Ring (a ring into a dead line is lost), and say whether the worker has heard more than so many."""
    carry_due_runs.apply_async(queue=QUEUE, expires=60)
    return rings() > times


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
    with watched(broker._replace(netloc=f"127.0.0.1:{line.port}").geturl(), SECONDS) as child:
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
