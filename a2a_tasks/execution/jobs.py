"""Celery's jobs: a few lines each that call what is tested without Celery."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from celery import shared_task, signals

from a2a_tasks.conf import conf
from a2a_tasks.execution import housekeeping, watchdog, worker
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import runs, sums
from a2a_tasks.store.hop import in_thread

__all__ = [
    "answer_watchdog",
    "carry_due_runs",
    "count_up_what_ended",
    "purge_old_tasks",
    "rescue_lost_runs",
]

_ending = threading.Event()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_due_runs(**_: Any) -> None:
    """The bell rang: let this process's runner look at the table."""
    worker.wake()


@shared_task(ignore_result=True, name=watchdog.JOB)  # type: ignore[untyped-decorator]
def answer_watchdog(**_: Any) -> None:
    """This worker rang itself; that it came through is all there is to it."""


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def rescue_lost_runs(**_: Any) -> None:
    """Beat's duty: take runs from dead processes, also when the loop of every worker is busy."""
    if not worker.patient():
        with contextlib.suppress(
            Overloaded
        ):  # the store has told the log; five seconds later again
            most, spared = int(conf.MAX_ATTEMPTS), worker.spared()
            in_thread(runs.rescue, max_attempts=most, without=spared)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def purge_old_tasks(**_: Any) -> None:
    """Beat's hourly duty: what retention says, for a while."""
    housekeeping.purge_in_this_thread(_ending)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def count_up_what_ended(**_: Any) -> None:
    """Beat's duty: have the dashboard's figures ready."""
    with contextlib.suppress(Overloaded):  # as above; whoever looks meanwhile counts for himself
        in_thread(sums.count_up)


@signals.after_task_publish.connect(sender=rescue_lost_runs.name)  # type: ignore[untyped-decorator]
def _on_fired(**_: Any) -> None:
    failpoint("scheduler.fired")  # beat has sent its duty, and not noted it yet


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _on_shutting_down(**_: Any) -> None:
    """The worker waits for its jobs; this one ends with its batch."""
    _ending.set()
