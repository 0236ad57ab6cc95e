"""A worker whose watchdog looks often, and what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a2a_tasks.caller import Scope
from a2a_tasks.models import Run
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from tests.support.execution.waiting import eventually
from tests.support.execution.workers import SHORT, own_worker
from tests.support.processes import Child
from tests.support.store.world import found, new

__all__ = ["DEMO", "NAME", "QUEUE", "ask", "carried", "watched"]

DEMO = Scope("", "user:alice", "demo")
#: A queue no other worker of the tests serves.
QUEUE = "kennel"
NAME = "watched@here"


@contextmanager
def watched(broker: str, seconds: float) -> Iterator[Child]:
    """A worker with that broker, which counts as deaf when it has heard nothing for so long."""
    environ = {**SHORT, "A2A_WATCHDOG_SECONDS": str(seconds), "CELERY_BROKER_URL": broker}
    with own_worker(QUEUE, 1, environ, name=NAME) as child:
        yield child


def ask(text: str, task: str) -> None:
    """A task whose run waits for the watched worker."""
    accept(new(task, text=text, scope=DEMO, queue=QUEUE))


def carried(task: str) -> Run:
    """The run of a task that has come to its end."""
    eventually(lambda: found(task, DEMO).state is TaskState.COMPLETED, 60)
    return Run.objects.get(task__public_id=task)
