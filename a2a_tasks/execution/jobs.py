"""Celery's jobs: a few lines each that call what is tested without Celery."""

from __future__ import annotations

from typing import Any

from celery import shared_task

from a2a_tasks.conf import conf
from a2a_tasks.execution import worker
from a2a_tasks.store import runs
from a2a_tasks.store.hop import in_thread

__all__ = ["carry_due_runs", "rescue_lost_runs"]


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_due_runs(**_: Any) -> None:
    """The bell rang: let this process's runner look at the table."""
    worker.wake()


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def rescue_lost_runs(**_: Any) -> None:
    """Beat's duty: take runs from dead processes, also when every worker is busy."""
    in_thread(runs.rescue, max_attempts=int(conf.MAX_ATTEMPTS))
