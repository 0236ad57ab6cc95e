"""The Celery jobs: a few lines each, which call code that is tested without Celery."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from celery import shared_task, signals

from a2a_tasks.conf import conf
from a2a_tasks.execution import housekeeping, worker
from a2a_tasks.failpoints import failpoint
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import call_trees, runs
from a2a_tasks.store.db import run_here

__all__ = ["carry_due_runs", "ending", "look_at_all_waits", "purge_old_tasks", "rescue_lost_runs"]

#: Set when the worker ends: the purge then stops after its batch.
ending = threading.Event()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_due_runs(**_: Any) -> None:
    """Make this process's runner look for due runs (`wake_up`)."""
    worker.wake()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def rescue_lost_runs(**_: Any) -> None:
    """Take runs from dead processes, called by beat: it works even if the event loop of every worker is busy."""
    if not worker.patient():
        with contextlib.suppress(Overloaded):  # the store has logged it; beat calls again
            limit, spared = int(conf.MAX_ATTEMPTS), worker.list_active_runs()
            run_here(runs.reclaim_expired, max_attempts=limit, without=spared)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def look_at_all_waits(**_: Any) -> None:
    """Wake the runs whose task or calls have ended, and that the looks of all processes have missed, called by beat."""
    with contextlib.suppress(Overloaded):
        run_here(call_trees.look_at_all)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def purge_old_tasks(**_: Any) -> None:
    """Run the hourly purge, called by beat."""
    housekeeping.purge_in_this_thread(ending)


@signals.after_task_publish.connect(sender=rescue_lost_runs.name)  # type: ignore[untyped-decorator]
def _on_fired(**_: Any) -> None:
    failpoint("scheduler.fired")  # beat has sent the job, and not noted it yet
