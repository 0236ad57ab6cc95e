"""The report: kept for a moment, and the same in a few numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import QuerySet

from a2a_console.statistics import reports
from a2a_console.statistics.counts import PERIODS, TooMany
from a2a_console.statistics.reports import Report, report, report_agents
from a2a_tasks.models import Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import add_run, make_task
from tests.support.ended_tasks import make_ended

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    reports.forget()
    yield
    reports.forget()


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows


def nothing(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows.none()


def week(whose: str = "all") -> Report:
    return report(PERIODS["week"], nothing if whose == "nobody" else everything, whose=whose)


def number(found: Report, name: str) -> float | None:
    return next(one.value for one in found.numbers if one.name == name)


def wait_with_a_run(agent: str) -> None:
    task = make_task(f"waits-{agent}", agent=agent)
    Task.objects.filter(pk=task.pk).update(state=TaskState.SUBMITTED)
    add_run(task)


def too_many(*_: Any) -> Any:
    raise TooMany


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
        later = time.monotonic() + PERIODS["week"].step.total_seconds() / reports.PART + 1
        # Its own clock: threads and loops of the process go by the other.
        monkeypatch.setattr(reports, "time", SimpleNamespace(monotonic=lambda: later))
        assert number(week(), "ended") == 2

    def test_does_not_keep_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reports, "KEPT", 2)
        for name in ("a", "b", "c"):
            week(name)
        assert len(reports._kept) <= 2

    def test_names_agents_and_tenants_of_which_most_ended_first(self) -> None:
        for agent, tenant in (("a", "acme"), ("b", "acme"), ("b", "other")):
            make_ended(agent=agent, tenant=tenant)
        found = week()
        assert [(line.name, line.ended) for line in found.agents] == [("b", 2), ("a", 1)]
        assert [(line.name, line.ended) for line in found.tenants] == [("acme", 2), ("other", 1)]

    def test_names_agents_of_which_nothing_ended_after_those_of_which_something_did(self) -> None:
        make_ended(agent="ended")
        wait_with_a_run("agent")
        assert [(line.name, line.ended, line.queued) for line in week().agents] == [
            ("ended", 1, 0),
            ("agent", 0, 1),
        ]

    def test_names_so_many_agents_and_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reports, "TOP", 3)
        for index in range(5):
            make_ended(agent=f"agent-{index}")
        assert len(week().agents) == 3

    def test_adds_up(self) -> None:
        for state in (TaskState.FAILED, TaskState.COMPLETED, TaskState.REJECTED):
            make_ended(state)
        found = week()
        assert {label: sum(values) for label, values in found.series.items()} == {
            "completed": 1,
            "canceled": 0,
            "rejected": 1,
            "failed": 1,
        }
        assert {len(values) for values in found.series.values()} == {found.period.slots}
        assert (number(found, "ended"), number(found, "failed")) == (3, 1)

    @pytest.mark.parametrize("what", ["count_ended", "report_webhooks"])
    def test_says_what_is_unfinished_where_too_much_ended(
        self, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        make_ended()
        wait_with_a_run("demo")
        monkeypatch.setattr(reports, what, too_many)
        found = week()
        assert (found.complete, found.webhooks, number(found, "queued")) == (False, None, 1)
        names = {one.name for one in found.numbers}
        assert ("ended" in names) == bool(found.series) == (what == "report_webhooks")


class TestTheReportOfAgents:
    def test_has_what_ended_in_the_past_hour_and_what_is_unfinished(self) -> None:
        make_ended(agent="a")
        wait_with_a_run("b")
        found = report_agents()
        assert (found["a"].ended, found["a"].queued) == (1, 0)
        assert (found["b"].ended, found["b"].queued) == (0, 1)

    def test_has_what_is_unfinished_where_too_much_ended(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wait_with_a_run("demo")
        monkeypatch.setattr(reports, "count_ended", too_many)
        assert report_agents()["demo"].queued == 1
