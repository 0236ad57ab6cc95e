"""Stuck tasks are found by the reasons that their diagnosis gives, and tasks that go on are not."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from a2a_console.diagnosis.reasons import diagnose
from a2a_console.search import stuck_tasks
from a2a_console.search.selection import Selection, page
from a2a_console.search.stuck_tasks import KINDS, find_stuck
from a2a_tasks.models import Event, Run, Task
from a2a_tasks.store import workers
from tests.integration.console.diagnosis.test_facts import beat
from tests.support.store.world import accepted, expire, held

pytestmark = pytest.mark.django_db

LONG_AGO = datetime.timedelta(minutes=6)


def waits(agent: str = "demo", **columns: Any) -> int:
    """A task whose run has been due for a while."""
    task = accepted(f"task-{Task.objects.count()}").task
    Run.objects.filter(task=task).update(due_at=Now() - LONG_AGO, agent=agent, **columns)
    Task.objects.filter(pk=task).update(agent=agent)
    return task


@pytest.fixture
def five() -> dict[str, int]:
    """A task of each kind, and a worker for one queue."""
    beat("here:1", queues=("agents",), agents={"demo": "1.0"}, slots=4)
    silent = held("silent")
    Run.objects.filter(pk=silent.key).update(started_at=Now() - LONG_AGO)
    Event.objects.filter(task=silent.task).update(created_at=Now() - LONG_AGO)
    lost = held("lost")
    expire(lost.key)
    held("busy")
    waits()
    return {
        "no-worker": waits(queue="crawl"),
        "no-agent": waits("gone"),
        "lost": lost.task,
        "silent": silent.task,
        "quarantine": waits(shared_deaths=2),
    }


def test_each_is_found_by_its_kind(five: dict[str, int]) -> None:
    assert set(five) == set(KINDS)
    for kind, task in five.items():
        assert list(find_stuck(kind)) == [task], kind
        assert kind == "silent" or diagnose(task).kind == kind
        items = page(Task.objects.all(), Selection(stuck=kind), size=10).items
        assert [row.pk for row in items] == [task]
    assert set(find_stuck()) == set(five.values())


def test_many_of_one_kind_hide_no_other(
    five: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = [waits(queue="crawl") for _ in range(6)][-1]
    monkeypatch.setattr(stuck_tasks, "MAX_COUNT", 4)
    for kind, task in five.items():
        assert kind == "no-worker" or list(find_stuck(kind)) == [task], kind
    assert {five["lost"], five["silent"], five["no-agent"], newest} == set(find_stuck())


def test_of_many_agents_without_a_worker_no_more_are_read_than_are_told(
    five: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        waits(queue=f"crawl-{number}")
    monkeypatch.setattr(stuck_tasks, "MAX_COUNT", 4)
    kinds = [one.kind for one in stuck_tasks._find_unserved()]
    assert kinds.count("no-worker") == 4


def test_operators_say_how_long_an_agent_may_be_silent(
    five: dict[str, int], settings: Settings
) -> None:
    settings.A2A_SILENT_MINUTES = 6.5
    assert find_stuck("silent") == {}
    settings.A2A_SILENT_MINUTES = 5.5
    assert find_stuck("silent")[five["silent"]].words.startswith("no output for 5.5 min")


def test_the_reason_is_told_in_words(five: dict[str, int]) -> None:
    words = {one.kind: one.words for one in find_stuck().values()}
    assert words["no-worker"] == "no worker for the queue crawl"
    assert words["no-agent"] == "no worker has gone"


def test_a_worker_that_drains_serves_no_queue() -> None:
    task = waits()
    beat("w:1", queues=("agents",), agents={"demo": "1.0"}, draining=True)
    assert find_stuck()[task].kind == "no-worker"


def test_leases_alone_show_that_a_queue_is_served() -> None:
    held("busy")
    waits()
    assert workers.list_living() == []
    assert find_stuck() == {}


def test_no_more_are_read_than_are_shown(
    five: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stuck_tasks, "MAX_COUNT", 2)
    with CaptureQueriesContext(connection) as asked:
        assert len(find_stuck()) == 2
    assert all(
        "LIMIT" in one["sql"]
        for one in asked
        if one["sql"].startswith('SELECT "a2a_tasks_run"."task_id"')
    )


def test_the_command_lists_them(five: dict[str, int]) -> None:
    out = io.StringIO()
    call_command("a2a", "tasks", "--stuck", "--format", "json", stdout=out)
    assert out.getvalue().count("\n") == len(five)
    out = io.StringIO()
    call_command("a2a", "tasks", "--stuck", "lost", "--format", "json", stdout=out)
    assert '"id":"lost"' in out.getvalue()
