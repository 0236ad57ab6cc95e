"""`manage.py a2a rerun`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState
from tests.integration.console import a2a
from tests.support.admin.rows import add_run, make_task

pytestmark = pytest.mark.django_db


def ended(name: str = "one", state: TaskState = TaskState.FAILED) -> Task:
    """A task that can be run again."""
    task = make_task(name, state=state)
    add_run(task)
    return task


def test_ended_tasks_are_run_again_by_filters() -> None:
    old, _ = ended(), ended("two", TaskState.COMPLETED)
    told = a2a("rerun", "--state", "failed", "--yes")
    new = Task.objects.latest("pk")
    assert told == f"#{old.pk}  {new.public_id}\n"
    assert (new.state, new.context_id) == (TaskState.SUBMITTED, old.context_id)


def test_the_same_wish_said_again_runs_nothing_twice() -> None:
    ended()
    first = a2a("rerun", "one", "--yes", "--nonce", "monday")
    assert a2a("rerun", "one", "--yes", "--nonce", "monday") == first
    assert Task.objects.count() == 2


def test_one_that_goes_on_is_left_alone_and_counted() -> None:
    add_run(make_task("one"))
    with pytest.raises(CommandError, match="Run again: 0 of 1"):
        a2a("rerun", "one", "--yes")
    assert Task.objects.count() == 1
