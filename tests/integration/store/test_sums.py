"""What ended, counted up ahead: the same numbers, without reading the tasks of slots that are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from a2a_tasks.models import EndedSums, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.figures import PERIODS, Ended, Period, closed, ended
from a2a_tasks.store.sums import PREPARED, count_up, counted
from tests.support.ended_tasks import make_ended

pytestmark = pytest.mark.django_db
#: In the first half of a slot of each period.
NOON = datetime(2026, 11, 22, 12, 1, tzinfo=UTC)
HOUR, DAY, WEEK = PERIODS["hour"], PERIODS["day"], PERIODS["week"]


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """All rows."""
    return rows


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    """It is so late now."""
    monkeypatch.setattr(timezone, "now", lambda: moment)


def some() -> None:
    """Tasks of several agents and tenants that ended in all kinds of slots."""
    for number in range(40):
        make_ended(
            TaskState.FAILED if number % 3 else TaskState.COMPLETED,
            ago=number * timedelta(hours=3.7),
            took=0.5 * 1.4**number,
            agent=f"agent-{number % 4}",
            tenant=("", 'a"cme', "acme/berlin")[number % 3],
        )


def shown(found: Ended) -> tuple[Any, ...]:
    """All that is told of it."""
    return found.since, found.slots, found.whole, found.agents, found.tenants


def rows() -> set[tuple[str, datetime]]:
    """What has been counted up."""
    return set(EndedSums.objects.values_list("period", "since"))


@pytest.mark.parametrize("period", PREPARED, ids=lambda period: period.name)
def test_is_what_whoever_looks_would_have_counted(
    monkeypatch: pytest.MonkeyPatch, period: Period
) -> None:
    at(monkeypatch, NOON)
    some()
    count_up()
    known = counted(period, period.begin(NOON))
    assert known == closed(period, period.begin(NOON), everything)
    assert shown(ended(period, everything, known)) == shown(ended(period, everything))


def test_is_ready_when_the_next_slot_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOON)
    some()
    later = NOON + 0.8 * DAY.step
    at(monkeypatch, later)
    count_up()
    at(monkeypatch, NOON + DAY.step)
    since = DAY.begin(NOON + DAY.step)
    assert counted(DAY, since) == closed(DAY, since, everything)
    make_ended()
    assert ended(DAY, everything, counted(DAY, since)).whole == ended(DAY, everything).whole


def test_is_not_counted_up_before_its_last_slot_is_long_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at(monkeypatch, NOON)
    count_up()
    assert rows() == {("day", DAY.begin(NOON)), ("week", WEEK.begin(NOON))}


def test_goes_when_nobody_needs_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOON)
    count_up()
    at(monkeypatch, NOON + DAY.step)
    count_up()
    assert rows() == {("day", DAY.begin(NOON) + DAY.step), ("week", WEEK.begin(NOON))}


def test_is_not_counted_up_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOON)
    count_up()
    make_ended(ago=timedelta(hours=5))
    Task.objects.filter(tenant="").update(tenant="acme")
    count_up()
    found = counted(DAY, DAY.begin(NOON))
    assert found is not None
    assert not found.counts.tenants


def test_of_which_there_is_nothing_is_none() -> None:
    assert counted(HOUR, HOUR.begin(timezone.now())) is None
