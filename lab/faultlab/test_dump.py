"""The dump is what the host has written, and what the host writes in peace satisfies the checker."""

from __future__ import annotations

import json
import os
import time

import psycopg
import pytest

from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import runs, steps
from a2a_tasks.store.accept import accept
from a2a_tasks.store.idempotency import IdempotencyKey, remember
from a2a_tasks.store.records import ClaimedRun, StepResult
from lab.faultlab.checker import check
from lab.faultlab.dump import Dump, dump
from lab.faultlab.history import Record
from tests.support.execution.waiting import eventually
from tests.support.store.world import ALICE, Pen, new

pytestmark = [pytest.mark.backend("stack"), pytest.mark.django_db(transaction=True)]


def told() -> Dump:
    """Everything in the database of this run."""
    return dump(os.environ["DATABASE_URL"])


def taken() -> ClaimedRun:
    """A task accepted under the key k1, whose run is ours."""
    key = IdempotencyKey(ALICE, "key/k1", "f")
    run = accept(new(held=True, companions=(remember(key),), lock=key.name)).claimed_run
    assert run is not None
    return run


def carried() -> ClaimedRun:
    """The same, carried to its end: words, an artifact in pieces, a step."""
    run = taken()
    pen = Pen(run)
    pen.state(TaskState.WORKING, "a1:0")
    steps.keep(StepResult(run, "pay", '"receipt"'))
    pen.begin("page", "a1:0;")
    pen.add("page", "a1:1;")
    pen.close("page", "a1:2;")
    pen.end()
    return run


def test_an_empty_host_has_no_rows() -> None:
    assert told() == Dump()


def test_every_table_is_there_with_its_moments_in_seconds() -> None:
    before = time.time()
    run = carried()
    eventually(lambda: told().artifacts[0].body)  # artifacts are folded behind the end
    found = told()
    (task,), (row,), (step,), (key,) = found.tasks, found.runs, found.steps, found.keys
    assert (task.id, task.state, task.last_event) == ("task-1", "TASK_STATE_COMPLETED", 6)
    assert (row.run, row.status, row.attempt, row.token) == (run.key, "ended", 1, "")
    assert (step.name, step.result, step.run) == ("pay", '"receipt"', run.key)
    assert (key.key, key.task, key.run) == ("k1", task.task, run.key)
    assert [event.kind for event in found.events] == [1, 2, 3, 3, 3, 2]
    assert [message.number for message in found.messages] == [1]
    assert [json.loads(a.body)["artifactId"] for a in found.artifacts] == ["page"]
    assert row.ended_at is not None
    moments = [task.created_at, row.created_at, step.created_at, row.ended_at]
    assert before - 1 < min(moments) <= max(moments) < time.time() + 1


def test_a_run_under_way_has_its_token() -> None:
    run = taken()
    found = told()
    assert (found.tasks[0].run_token, found.runs[0].token) == (run.token, run.token)
    assert found.runs[0].ended_at is None


def test_what_the_host_writes_in_peace_satisfies_the_checker() -> None:
    carried()
    found = told()
    begun = found.runs[0].created_at
    accepted = Record(begun, "accepted", {"key": "k1", "task": "task-1"})
    effect = {"task": "task-1", "step": "pay", "attempt": 1, "begun": begun, "ended": begun}
    assert check([accepted], [Record(begun, "effect", effect)], found) == []


def test_what_it_leaves_undone_does_not() -> None:
    runs.heartbeat([taken().token])
    accepted = Record(time.time(), "accepted", {"key": "k1", "task": "task-1"})
    found = {violation.invariant for violation in check([accepted], [], told())}
    assert found == {"I1", "I19"}


def test_a_database_that_is_not_there_is_an_error() -> None:
    with pytest.raises(psycopg.Error):
        dump(os.environ["DATABASE_URL"] + "-that-is-not-there")
