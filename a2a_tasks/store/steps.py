"""Durable steps: reads and writes of the results that an agent's turn has kept. Writes are fenced (law 4)."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_tasks.failpoints import failpoint
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.backend.server import read_clock
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.db import AWAY, run_to_completion
from a2a_tasks.store.records import LeaseLost, StepResult

__all__ = ["clock", "keep", "keep_batched", "read_results", "load_batched", "read_clock_batched"]

#: A turn: the key of its task, and the number of its message.
Turn = tuple[int, int]


def read_results(task: int, input_number: int) -> dict[str, str]:
    """Return the results of a turn's steps so far, as JSON by name."""
    (found,) = read_many_results([(task, input_number)])
    return found


def read_many_results(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return the results of many turns, each as `read_results` does."""
    found: dict[Turn, dict[str, str]] = {turn: {} for turn in turns}
    for task, number, name, result in backend().read_steps(found):
        found[task, number][name] = result
    return [found[turn] for turn in turns]


def keep(step: StepResult) -> None:
    """Write the result of a step of this run's turn, once.

    Raises LeaseLost if the run has lost its task, StepConflict if the step has another result.
    """
    if not _write([step]):
        raise LeaseLost


def keep_many(steps: Sequence[StepResult]) -> list[bool]:
    """Write those of the results that need no wait for a lock; return which. `keep` raises the errors of the others."""
    try:
        kept = _write(steps)
    except AWAY:
        raise  # the database is away: this affects all of them
    except Exception:  # noqa: BLE001 - `keep` raises the error of each
        kept = set()
    return [n in kept for n in range(len(steps))]


def _write(steps: Sequence[StepResult]) -> set[int]:
    failpoint("worker.keep_begins")
    return backend().keep_steps(steps)


def clock() -> float:
    """Return seconds since the epoch by the database's clock, shared by all processes."""
    return read_clock()


#: `await keep_batched(StepResult(...))`, `await load_batched((task, number))`, `await read_clock_batched(None)`: keep a result, read the
#: results of a turn, read the clock, each in one flush with other calls.
keep_batched: BatchedCall[StepResult, bool] = BatchedCall(
    lambda steps: list(keep_many(steps)),
    run=run_to_completion,
    size=lambda step: len(step.result),
    again=needs_no_mark,
)
load_batched: BatchedCall[Turn, dict[str, str]] = BatchedCall(
    lambda turns: list(read_many_results(turns)), again=needs_no_mark
)
read_clock_batched: BatchedCall[None, float] = BatchedCall(lambda calls: [clock()] * len(calls))
