"""Durable steps: the results an agent's turn has kept, read and written. A write is fenced like every other (law 4)."""

from __future__ import annotations

import time

from django.db import connection, transaction

from a2a_tasks.models import Step, Task
from a2a_tasks.store.records import Assignment, Fenced
from a2a_tasks.store.sql import fetch

__all__ = ["clock", "keep", "kept"]

# Whoever waited for the row reads it anew, so that a token taken away meanwhile is seen (decision 3).
KEEP = """
with held as (
  select id from a2a_tasks_task where id = %(task)s and run_token = %(token)s and run_token <> '' for update
)
insert into a2a_tasks_step (task_id, input_number, name, result, run)
select id, %(input)s, %(name)s, %(result)s, %(run)s from held
returning task_id
"""


def kept(task: int, input_number: int) -> dict[str, str]:
    """The results of a turn's steps so far, as JSON by name."""
    steps = Step.objects.filter(task_id=task, input_number=input_number)
    return dict(steps.values_list("name", "result"))


def keep(run: Assignment, name: str, result: str) -> None:
    """Write the result (JSON) of a step of this run's turn, once. Raises Fenced if the run has lost its task."""
    write = _keep_postgres if connection.vendor == "postgresql" else _keep_portable
    if not write(run, name, result):
        raise Fenced


def _keep_postgres(run: Assignment, name: str, result: str) -> bool:
    values = {
        "task": run.task,
        "token": run.token,
        "input": run.input_number,
        "name": name,
        "result": result,
        "run": run.run,
    }
    return bool(fetch(KEEP, values))


@transaction.atomic
def _keep_portable(run: Assignment, name: str, result: str) -> bool:
    held = Task.objects.filter(pk=run.task, run_token=run.token).exclude(run_token="")
    if not held.update(run_token=run.token):  # the write that makes the transaction a writer's
        return False
    Step.objects.create(
        task_id=run.task, input_number=run.input_number, name=name, result=result, run=run.run
    )
    return True


def clock() -> float:
    """Seconds since the epoch on the database's clock, which all processes share."""
    if connection.vendor == "postgresql":
        ((now,),) = fetch("select extract(epoch from clock_timestamp())::float8", [])
        return float(now)
    return time.time()  # SQLite's clock is that of its host
