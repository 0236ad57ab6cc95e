"""Durable steps: the results an agent's turn has kept, read and written. A write is fenced like every other (law 4)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from django.db import IntegrityError, connection, transaction

from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Step, Task
from a2a_tasks.store.group import Group, needs_no_mark
from a2a_tasks.store.hop import AWAY, outcome
from a2a_tasks.store.records import Assignment, Fenced
from a2a_tasks.store.sql import fetch

__all__ = ["clock", "keep", "keeping", "kept", "loading", "telling"]

# Whoever waited for a row reads it anew, so that a token taken away meanwhile is seen (decision 3). A run that keeps the same
# result again, because nobody knew what had become of it, has kept it.
KEEP = """
with input as (
  select * from unnest(%(n)s::int[], %(task)s::bigint[], %(token)s::text[], %(input)s::int[], %(name)s::text[],
    %(result)s::text[], %(run)s::bigint[]) as i(n, task, token, input, name, result, run)
), held as (
  select t.id, i.n from a2a_tasks_task t join input i on i.task = t.id
  where t.run_token = i.token and i.token <> '' order by t.id for update of t
), step as (
  insert into a2a_tasks_step (task_id, input_number, name, result, run)
  select h.id, i.input, i.name, i.result, i.run from held h join input i on i.n = h.n
  on conflict (task_id, input_number, name) do update set result = excluded.result
    where a2a_tasks_step.run = excluded.run and a2a_tasks_step.result = excluded.result
  returning task_id, name
)
select h.n, exists (select from step s join input i on (s.task_id, s.name) = (i.task, i.name) where i.n = h.n) from held h
"""
# Of many, those whose row somebody holds are left out, to be kept one by one: who waits for a row while holding others
# may wait for ever for somebody who does the same in another order.
KEEP_FREE = KEEP.replace("for update of t", "for update of t skip locked")

ANOTHER = "the step was kept before, with another result"

#: What is kept: the run, the name of its step, the result as JSON.
Kept = tuple[Assignment, str, str]


def kept(task: int, input_number: int) -> dict[str, str]:
    """The results of a turn's steps so far, as JSON by name."""
    (found,) = kept_many([(task, input_number)])
    return found


def kept_many(turns: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
    """The same for many turns, each named by its task and the number of its message."""
    found: dict[tuple[int, int], dict[str, str]] = {turn: {} for turn in turns}
    steps = Step.objects.filter(task_id__in={task for task, _ in turns})
    for task, number, name, result in steps.values_list(
        "task_id", "input_number", "name", "result"
    ):
        if (task, number) in found:
            found[task, number][name] = result
    return [found[turn] for turn in turns]


def keep(run: Assignment, name: str, result: str) -> None:
    """Write the result (JSON) of a step of this run's turn, once.

    Raises Fenced if the run has lost its task, IntegrityError if the step has another result.
    """
    if not _write([(run, name, result)]):
        raise Fenced


def keep_many(results: Sequence[Kept]) -> list[bool]:
    """Write what can be written of many without waiting for anybody; `keep` tells why the others cannot."""
    try:
        kept = _write(results)
    except AWAY:
        raise  # that concerns everybody
    except Exception:  # noqa: BLE001 - each will meet its own
        kept = set()
    return [n in kept for n in range(len(results))]


def _write(results: Sequence[Kept]) -> set[int]:
    failpoint("worker.keep_begins")
    write = _keep_postgres if connection.vendor == "postgresql" else _keep_portable
    return write(results)


def _keep_postgres(results: Sequence[Kept]) -> set[int]:
    values = {
        "n": list(range(len(results))),
        "task": [run.task for run, _, _ in results],
        "token": [run.token for run, _, _ in results],
        "input": [run.input_number for run, _, _ in results],
        "name": [name for _, name, _ in results],
        "result": [result for _, _, result in results],
        "run": [run.run for run, _, _ in results],
    }
    statement = KEEP if len(results) == 1 else KEEP_FREE
    size = sum(len(result) for _, _, result in results)
    rows = fetch(statement, values, point="worker.step_inside", size=size)
    if rows == [(0, False)] and len(results) == 1:
        raise IntegrityError(ANOTHER)
    return {n for n, is_kept in rows if is_kept}


@transaction.atomic
def _keep_portable(results: Sequence[Kept]) -> set[int]:
    if len(results) == 1:
        return {0} if _keep_one(*results[0]) else set()
    kept = set()
    for n, result in enumerate(results):
        with contextlib.suppress(IntegrityError):
            kept |= {n} if _keep_one(*result) else set()
    return kept


def _keep_one(run: Assignment, name: str, result: str) -> bool:
    held = Task.objects.filter(pk=run.task, run_token=run.token).exclude(run_token="")
    if not held.update(run_token=run.token):  # the write that makes the transaction a writer's
        return False
    said = {"result": result, "run": run.run}
    which = {"task_id": run.task, "input_number": run.input_number, "name": name}
    step, _ = Step.objects.get_or_create(**which, defaults=said)
    if (step.result, step.run) != (result, run.run):
        raise IntegrityError(ANOTHER)
    return True


def clock() -> float:
    """Seconds since the epoch on the database's clock, which all processes share."""
    if connection.vendor == "postgresql":
        ((now,),) = fetch("select extract(epoch from clock_timestamp())::float8", [])
        return float(now)
    return time.time()  # SQLite's clock is that of its host


#: `await keeping((run, name, result))`, `await loading((task, number))`, `await telling(None)`: the same, together with
#: whatever else is being kept, read or asked.
keeping: Group[Kept, bool] = Group(
    lambda results: list(keep_many(results)),
    run=outcome,
    size=lambda kept: len(kept[2]),
    again=needs_no_mark,
)
loading: Group[tuple[int, int], dict[str, str]] = Group(
    lambda turns: list(kept_many(turns)), again=needs_no_mark
)
telling: Group[None, float] = Group(lambda asked: [clock()] * len(asked))
