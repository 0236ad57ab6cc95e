"""Append batches of runs: one statement writes events, task rows, artifacts and the ends of runs.

The statement checks the task row, which must still have the run's token. A task that ended, was cancelled or was
rescued does not have it any more; then nothing is written, and the run gets LeaseLost (law 4). The row also counts
the batches that the run has written. A batch that is repeated after an unknown outcome is recognised by this number,
and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from a2a_tasks import pubsub
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Event, Run
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.batched_call import BatchedCall, one_by_one
from a2a_tasks.store.behind import release
from a2a_tasks.store.db import AWAY, is_away, run_to_completion
from a2a_tasks.store.folding import fold_behind
from a2a_tasks.store.records import Batch, LeaseLost

__all__ = ["append", "append_many", "append_batched"]


def append(batch: Batch) -> int:
    """Write the batch and announce it; return the number of its last event. Raises LeaseLost if nothing was written."""
    (result,) = append_many([batch])
    if isinstance(result, Exception):
        raise result
    return result


def append_many(batches: Sequence[Batch]) -> list[int | Exception]:
    """Append the batches of many runs; return for each the number of its last event, or LeaseLost."""
    failpoint("worker.append_begins")
    try:
        written = backend().append_batches(batches)
    except Exception as fault:
        if is_away(fault):
            raise  # this affects all of them; otherwise one cannot be written, and the others can
        if len(batches) == 1:
            return [fault]
        return one_by_one(append_many, batches)
    failpoint("worker.ended" if any(map(_end, batches)) else "worker.appended")
    results = [_announce(batch, done) for batch, done in zip(batches, written, strict=True)]
    failpoint("worker.announced")
    return results


_end = attrgetter("end")
#: `await append_batched(batch)`: append in one flush with other batches.
append_batched = BatchedCall(
    append_many, run=run_to_completion, size=attrgetter("size"), again=Batch.come_again
)


def _call_next(batch: Batch) -> None:
    """Queue and announce the run that waited for the end of this one: of its context if that is ordered, or of its task.

    The query comes after the commit: the statement that ends a run waits for a message that is being written, but does
    not see it.
    """
    hints: list[pubsub.Hint] = []
    if batch.ordered:
        context = Run.objects.values_list("ordered_in", flat=True).get(pk=batch.run)
        hints = release(context=context)
    # The agent may have been ordered when this message was accepted, and not when the next one was.
    if not hints and not batch.ends_task:
        hints = release(task=batch.task)
    for hint in hints:
        pubsub.publish(hint)


def _announce(batch: Batch, written: int | None) -> int | Exception:
    """Announce one batch of a flush. A failure affects only this batch: the others are written."""
    try:
        last = written or _find_written(batch)
        if last is None:
            return LeaseLost()
        pubsub.publish(pubsub.Committed(batch.task, last, batch.to_recorded(last)))
        if batch.closed:
            fold_behind(batch.task, last, batch.closed)
        if batch.end:
            _call_next(batch)
    except AWAY:
        return Overloaded.away(undone=False)
    return last


def _find_written(batch: Batch) -> int | None:
    """Return the last event's number that the first try of a repeated batch wrote; None if it wrote nothing."""
    if not batch.again or batch.after is None:
        return None
    mine = Run.objects.filter(pk=batch.run, token=batch.token, task__batches=batch.after + 1)
    if batch.end:
        mine = Run.objects.filter(pk=batch.run, status=batch.end.status)
    newest = Event.objects.filter(task_id=batch.task, run=batch.run).order_by("-number").first()
    if newest is None or not batch.events or not mine.exists():
        return None
    if (newest.body or batch.events[-1].body) != batch.events[-1].body:
        return None  # the event of another attempt
    return newest.number
