"""The report: kept for a moment, and the same in a few numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import QuerySet

from a2a_tasks.models import Task
from a2a_tasks.operations import figures
from a2a_tasks.operations.figures import PERIODS, Report, report
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import sums
from tests.support.admin.rows import add_run, make_task
from tests.support.ended_tasks import make_ended

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    figures.forget()
    yield
    figures.forget()


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """All rows."""
    return rows


def nothing(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """None."""
    return rows.none()


def week(whose: str = "all") -> Report:
    """The report of the week."""
    return report(PERIODS["week"], nothing if whose == "nobody" else everything, whose=whose)


def number(found: Report, name: str) -> float | None:
    """One of its numbers."""
    return next(one.value for one in found.numbers if one.name == name)


class TestTheReport:
    def test_keeps_what_ended_for_a_moment_and_reads_what_is_now(self) -> None:
        make_ended()
        assert number(week(), "ended") == 1
        make_ended()
        add_run(make_task("more"))
        assert (number(week(), "ended"), number(week(), "queued")) == (1, 1)

    def test_keeps_it_for_those_alone_who_may_see_the_same(self) -> None:
        make_ended()
        assert (number(week(), "ended"), number(week("nobody"), "ended")) == (1, 0)

    def test_reads_it_again_when_the_moment_is_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        make_ended()
        week()
        make_ended()
        later = time.monotonic() + PERIODS["week"].step.total_seconds() / figures.PART + 1
        # Its own clock: threads and loops of the process go by the other.
        monkeypatch.setattr(figures, "time", SimpleNamespace(monotonic=lambda: later))
        assert number(week(), "ended") == 2

    @pytest.mark.parametrize("of_host", [True, False])
    def test_takes_what_the_host_has_counted_up_for_those_who_see_all(self, of_host: bool) -> None:
        make_ended(ago=timedelta(days=2))
        sums.count_up()
        make_ended(ago=timedelta(days=2))
        make_ended()
        found = report(PERIODS["week"], everything, whose="some", of_host=of_host)
        assert number(found, "ended") == (2 if of_host else 3)

    def test_does_not_keep_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "KEPT", 2)
        for name in ("a", "b", "c"):
            week(name)
        assert len(figures._kept) <= 2

    def test_names_agents_of_which_nothing_ended_after_those_of_which_something_did(self) -> None:
        make_ended(agent="ended")
        task = make_task("waits", agent="waits")
        Task.objects.filter(pk=task.pk).update(state=TaskState.SUBMITTED)
        add_run(task)
        lines = week().agents
        assert [(line.name, line.ended, line.queued) for line in lines] == [
            ("ended", 1, 0),
            ("waits", 0, 1),
        ]

    def test_adds_up(self) -> None:
        for state in (TaskState.FAILED, TaskState.COMPLETED, TaskState.REJECTED):
            make_ended(state)
        found = week()
        assert sum(sum(map(float, filter(None, one.values))) for one in found.series) == 3
        assert {one.label for one in found.series if any(one.values)} == {
            "completed",
            "rejected",
            "failed",
        }
