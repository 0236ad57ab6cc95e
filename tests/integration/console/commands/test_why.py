"""`manage.py a2a why`."""

from __future__ import annotations

import pytest
from django.core.management import CommandError

from a2a_tasks.protocol.values import TaskState
from tests.integration.console.commands import a2a
from tests.support.console.admin.rows import make_task

pytestmark = pytest.mark.django_db


def test_tells_of_a_task_by_its_id_and_by_its_number() -> None:
    task = make_task(state=TaskState.INPUT_REQUIRED)
    first, second = a2a("why", "task-1").splitlines()
    assert first.startswith("[input] Waiting for input from the client for")
    assert second.startswith("  Next: (its client) The client sends a message")
    assert a2a("why", f"#{task.pk}").startswith("[input]")


def test_tells_of_all_owners_tasks_of_an_id() -> None:
    tasks = [make_task(owner=owner) for owner in ("alice", "bob")]
    said = a2a("why", "task-1")
    assert [f"Task #{task.pk}:" in said for task in tasks] == [True, True]


def test_says_that_there_is_none() -> None:
    with pytest.raises(CommandError, match="no task called nope"):
        a2a("why", "nope")
