"""Celery's jobs: a few lines each that call what is tested without Celery."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task, signals

from a2a_tasks.conf import conf
from a2a_tasks.execution import housekeeping, worker
from a2a_tasks.store import runs
from a2a_tasks.store.hop import in_thread

__all__ = ["carry_due_runs", "purge_old_tasks", "rescue_lost_runs"]

_ending = threading.Event()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_due_runs(**_: Any) -> None:
    """The bell rang: let this process's runner look at the table."""
    worker.wake()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def rescue_lost_runs(**_: Any) -> None:
    """Beat's duty: take runs from dead processes, also when every worker is busy."""
    in_thread(runs.rescue, max_attempts=int(conf.MAX_ATTEMPTS))


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def purge_old_tasks(**_: Any) -> None:
    """Beat's hourly duty: what retention says, for a while."""
    housekeeping.purge_in_this_thread(_ending)


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _on_shutting_down(**_: Any) -> None:
    """The worker waits for its jobs; this one ends with its batch."""
    _ending.set()
