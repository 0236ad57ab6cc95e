"""Cancellation by an operator: the operation of the API, once for each task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asgiref.sync import async_to_sync

from a2a_tasks.models import Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.errors import Overloaded, TaskNotCancelable, TaskNotFound

__all__ = ["Outcome", "cancel"]


@dataclass
class Outcome:
    """The numbers of tasks that were cancelled, had ended before, are gone, or were not tried."""

    cancelled: int = 0
    ended: int = 0
    gone: int = 0
    untried: int = 0


def cancel(tasks: Iterable[Task], *, by: str, record: Callable[[Task], None]) -> Outcome:
    """Cancel each task and record it at once, so that the record is true after a failure half-way.

    When the database cannot be reached, the remaining tasks are not tried: each attempt would only fail more slowly.
    """
    outcome = Outcome()
    for task in tasks:
        if outcome.untried:
            outcome.untried += 1
            continue
        try:
            async_to_sync(cancel_task.cancel_by_key)(task.pk, by=by)
        except TaskNotCancelable:  # the task ended while the operator looked at the page
            outcome.ended += 1
        except TaskNotFound:
            outcome.gone += 1
        except Overloaded:
            outcome.untried += 1
        else:
            outcome.cancelled += 1
            record(task)
    return outcome
