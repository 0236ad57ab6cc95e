"""Durable steps: the results an agent's turn has kept, read and written. A write is fenced like every other (law 4)."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_tasks import models
from a2a_tasks.failpoints import failpoint
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.db import AWAY, run_to_completion
from a2a_tasks.store.records import LeaseLost, StepResult

__all__ = ["clock", "keep", "keeping", "read_results", "loading", "telling"]

#: (task, number of its message) of a turn.
Turn = tuple[int, int]


def read_results(task: int, input_number: int) -> dict[str, str]:
    """The results of a turn's steps so far, as JSON by name."""
    (found,) = read_many_results([(task, input_number)])
    return found


def read_many_results(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """As `read_results`, for many turns, each named by its task and the number of its message."""
    found: dict[Turn, dict[str, str]] = {turn: {} for turn in turns}
    rows = models.Step.objects.filter(task_id__in={task for task, _ in turns})
    for task, number, name, result in rows.values_list("task_id", "input_number", "name", "result"):
        if (task, number) in found:
            found[task, number][name] = result
    return [found[turn] for turn in turns]


def keep(step: StepResult) -> None:
    """Write the result of a step of this run's turn, once.

    Raises LeaseLost if the run has lost its task, StepConflict if the step has another result.
    """
    if not _write([step]):
        raise LeaseLost


def keep_many(steps: Sequence[StepResult]) -> list[bool]:
    """Write what can be written of many without waiting for anybody; `keep` tells why the others cannot."""
    try:
        kept = _write(steps)
    except AWAY:
        raise  # that concerns everybody
    except Exception:  # noqa: BLE001 - each will meet its own
        kept = set()
    return [n in kept for n in range(len(steps))]


def _write(steps: Sequence[StepResult]) -> set[int]:
    failpoint("worker.keep_begins")
    return backend().keep_steps(steps)


def clock() -> float:
    """Return seconds since the epoch by the database's clock, which all processes share."""
    return backend().read_clock()


#: `await keeping(StepResult(...))`, `await loading((task, number))`, `await telling(None)`: the same, together with
#: whatever else is being kept, read or asked.
keeping: BatchedCall[StepResult, bool] = BatchedCall(
    lambda steps: list(keep_many(steps)),
    run=run_to_completion,
    size=lambda step: len(step.result),
    again=needs_no_mark,
)
loading: BatchedCall[Turn, dict[str, str]] = BatchedCall(
    lambda turns: list(read_many_results(turns)), again=needs_no_mark
)
telling: BatchedCall[None, float] = BatchedCall(lambda asked: [clock()] * len(asked))
