"""Cancelling by hand: the operation that the API calls, once for each task."""

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
    """How many tasks were cancelled, had ended before, are no longer there, or could not be reached."""

    cancelled: int = 0
    ended: int = 0
    gone: int = 0
    untried: int = 0


def cancel(tasks: Iterable[Task], *, by: str, record: Callable[[Task], None]) -> Outcome:
    """Cancel each task and record it at once, so that a failure half-way leaves the record true.

    When the database cannot be reached the rest is left as it is: trying on would only take longer to fail.
    """
    outcome = Outcome()
    for task in tasks:
        if outcome.untried:
            outcome.untried += 1
            continue
        try:
            async_to_sync(cancel_task.cancel_by_key)(task.pk, by=by)
        except TaskNotCancelable:  # it ended while the operator was looking at it
            outcome.ended += 1
        except TaskNotFound:
            outcome.gone += 1
        except Overloaded:
            outcome.untried += 1
        else:
            outcome.cancelled += 1
            record(task)
    return outcome
