"""`manage.py a2a why`."""

from __future__ import annotations

import datetime

import msgspec
import pytest
from django.core.management import CommandError
from django.db.models.functions import Now

from a2a_tasks.access import switch_cache
from a2a_tasks.agents import registry
from a2a_tasks.agents.declaration import declare
from a2a_tasks.models import PARKED, Run
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import versions
from tests.integration.console.commands import a2a
from tests.support.console.admin.rows import add_run, make_task

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


def test_no_words_of_an_agent_control_the_terminal() -> None:
    task = make_task(state=TaskState.WORKING)
    noon = datetime.datetime(2100, 1, 1, 12, tzinfo=datetime.UTC)
    add_run(task, round=PARKED, attempt=1, due_at=noon, parked_in="night\x1b[2J\u202e")
    said = a2a("why", "task-1")
    assert "Parked in the step night\ufffd[2J\ufffd for another" in said
    assert all(line.isprintable() for line in said.splitlines())


def test_says_that_there_is_none() -> None:
    with pytest.raises(CommandError, match="no task called nope"):
        a2a("why", "nope")


def test_knows_announced_agents() -> None:
    own = registry.find_own("demo")
    assert own is not None
    card = msgspec.structs.replace(
        declare(own), slug="far", version="2.0", when_version_is_gone="fail"
    )
    versions.announce(msgspec.json.encode(card), environment="adk", host="0.1.0")
    task = make_task(agent="far")
    add_run(task)
    long_ago = Now() - datetime.timedelta(hours=1)
    Run.objects.filter(task=task).update(queue="far@2.0", due_at=long_ago)
    try:
        first, second = a2a("why", "task-1").splitlines()
    finally:
        switch_cache.forget()
    assert "No live worker has version 2.0 of the agent far: the environment adk" in first
    assert second.startswith("  Next: (you) Without a worker the task fails.")
