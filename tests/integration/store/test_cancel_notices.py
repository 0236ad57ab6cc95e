"""Notices of cancelled tasks: those that nobody takes slow neither a cancel nor the look of each second."""

from __future__ import annotations

import datetime
from typing import NoReturn

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from a2a_tasks.models import CancelNotice, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel, cancel_notices
from a2a_tasks.store.purge import RetentionLimits, purge
from a2a_tasks.store.records import RunEnd
from tests.support.store.reading import count_rows
from tests.support.store.world import ALICE, Pen, held

pytestmark = pytest.mark.django_db
GONE = """
insert into a2a_tasks_cancelnotice (run, agent, at)
select n, 'gone', now() from generate_series(1, 20000) n
"""


def waiting(task: str) -> None:
    """A task that waits for its client."""
    Pen(held(task)).state(TaskState.INPUT_REQUIRED, end=RunEnd())


def cancelled(task: str) -> None:
    waiting(task)
    cancel.cancel(ALICE, task)


@pytest.mark.backend("stack")
def test_a_look_reads_no_notices_of_agents_that_nobody_hosts() -> None:
    with connection.cursor() as cursor:
        cursor.execute(GONE)
        cursor.execute("analyze a2a_tasks_cancelnotice")
    before = count_rows()
    assert cancel_notices.take(["demo", "other"]) == []
    assert count_rows() - before < 100
    cancelled("task-1")
    before = count_rows()
    (run,) = cancel_notices.take(["demo", "other"])
    assert run.task_id == "task-1"
    assert count_rows() - before < 100


def test_a_cancel_writes_its_notice_and_does_no_more_with_those_of_others() -> None:
    cancelled("task-1")
    waiting("task-2")
    with CaptureQueriesContext(connection) as statements:
        cancel.cancel(ALICE, "task-2")
    noted = [one["sql"] for one in statements if "cancelnotice" in one["sql"]]
    assert [sql.split()[0] for sql in noted] == ["INSERT"]


def test_notices_are_taken_by_the_bytes_of_their_messages_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cancel_notices, "CLAIM_BYTES", 100_000)
    for number, size in enumerate([90_000, 20_000, 20_000, 20_000]):
        Pen(held(f"task-{number}", text="x" * size)).state(TaskState.INPUT_REQUIRED, end=RunEnd())
        cancel.cancel(ALICE, f"task-{number}")
    taken = []
    while runs := cancel_notices.take(["demo"]):
        taken.append(sorted(run.task_id for run in runs))
    assert taken == [["task-0"], ["task-1", "task-2"], ["task-3"]]


def test_those_of_agents_that_do_not_listen_are_removed_and_no_message_is_read() -> None:
    cancelled("task-1")
    with CaptureQueriesContext(connection) as statements:
        assert cancel_notices.take(["other"], ["demo"]) == []
    assert not any("a2a_tasks_message" in one["sql"] for one in statements)
    assert not CancelNotice.objects.exists()


def test_those_that_cannot_be_read_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise OperationalError("canceling statement due to statement timeout")

    cancelled("task-1")
    cancelled("task-2")
    with monkeypatch.context() as broken:
        broken.setattr(cancel_notices, "describe_run", fail)
        with pytest.raises(OperationalError):
            cancel_notices.take(["demo"])
    (one,) = cancel_notices.take(["demo"], any_one=True)
    (other,) = cancel_notices.take(["demo"], any_one=True)
    assert {one.task_id, other.task_id} == {"task-1", "task-2"}


def test_those_of_tasks_that_are_gone_are_removed() -> None:
    cancelled("task-1")
    Task.objects.all().delete()
    assert cancel_notices.take(["demo"]) == []
    assert not CancelNotice.objects.exists()


def test_the_purge_removes_in_portions_those_that_nobody_took(settings: Settings) -> None:
    settings.A2A_PURGE_BATCH = 2
    for number in range(5):
        cancelled(f"task-{number}")
    fresh = CancelNotice.objects.latest("pk")
    old = Now() - cancel_notices.KEPT - datetime.timedelta(hours=1)
    CancelNotice.objects.exclude(pk=fresh.pk).update(at=old)
    assert [step.rows for step in purge(RetentionLimits())] == [2, 2]
    assert CancelNotice.objects.get() == fresh
