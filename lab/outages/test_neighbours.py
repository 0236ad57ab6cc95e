"""One run that kills its process does no lasting harm to those beside it: a real worker, started again whenever it dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import Run, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
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
QUEUE = "neighbours"


@pytest.fixture
def worker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[processes.Process]:
    """The only worker of the queue, at default settings, started again whenever it dies."""
    made = processes.worker(
        "alone",
        QUEUE,
        environ={
            **backend.children(),
            "A2A_APPS": "tests.support.execution.neighbours",
            **getattr(request, "param", {}),
        },
        directory=Path.cwd(),
        logs=tmp_path,
    )
    made.start()
    yield made
    made.stop()


def send(slug: str, task: str, text: str) -> None:
    """A task whose run waits for the worker."""
    accept(new(task, text=text, scope=OwnerScope("", "user:alice", slug), queue=QUEUE))


def states(slug: str) -> set[str]:
    """How the tasks of an agent stand."""
    return set(Task.objects.filter(agent=slug).values_list("state", flat=True))


def test_a_task_that_kills_its_process_fails_alone(worker: processes.Process) -> None:
    send("poison", "poison", "1")
    for n in range(100):
        send("good", f"good-{n}", "5")
    eventually(lambda: states("poison") | states("good") <= TERMINAL, 400)
    assert states("good") == {TaskState.COMPLETED}
    assert states("poison") == {TaskState.FAILED}
    assert Run.objects.get(task__agent="poison").error.count("signal 9") == 3


@pytest.mark.parametrize("worker", [{"A2A_WATCHDOG_SECONDS": "6"}], indirect=True)
def test_a_task_that_keeps_the_interpreter_to_itself_stops_nobody_for_good(
    worker: processes.Process,
) -> None:
    """The worker can do nothing about it, not even end; in a process of its own it harms nobody."""
    send("hog", "hog", "1")
    for n in range(10):
        send("good", f"good-{n}", "3")
    eventually(lambda: states("good") == {TaskState.COMPLETED}, 200)
    assert worker.starts > 1
    traces = "".join(log.read_text() for log in worker.logs.glob("alone.*.log"))
    assert "Timeout (0:00:06)!" in traces
    assert "neighbours/agents.py" in traces, "the log says who it was"
