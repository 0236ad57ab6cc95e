"""Figures, read from rows: what is under way is counted to a bound, what has ended by slot, agent and tenant."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.models import RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import figures
from a2a_tasks.store.figures import (
    FINENESS,
    PERIODS,
    SHORTEST,
    Ended,
    ended,
    in_words,
    percentile,
    standing,
)
from tests.support.admin.rows import add_run, make_task
from tests.support.ended_tasks import make_ended

S = TaskState
NOON = datetime(2026, 11, 22, 12, 1, tzinfo=UTC)
HOUR, DAY, WEEK = PERIODS["hour"], PERIODS["day"], PERIODS["week"]


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """All rows."""
    return rows


def acme(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    """Those of one tenant."""
    return rows.filter(**{f"{by}tenant": "acme"})


def slot_counts(found: Ended) -> list[int]:
    """How many ended in each slot."""
    return [sum(slot.counts.values()) for slot in found.slots]


class TestAPeriod:
    @pytest.mark.parametrize("period", PERIODS.values(), ids=list(PERIODS))
    def test_begins_at_a_round_moment_and_holds_now_in_its_last_slot(self, period: Any) -> None:
        now = datetime(2026, 11, 22, 5, 37, 41, 123456, tzinfo=UTC)
        begin = period.begin(now)
        assert begin.timestamp() % period.step.total_seconds() == 0
        last = begin + (period.slots - 1) * period.step
        assert last <= now < last + period.step


@pytest.mark.django_db
class TestWhatEnded:
    def test_is_in_the_slot_in_which_it_ended(self) -> None:
        make_ended()
        make_ended(ago=10 * HOUR.step)
        make_ended(ago=timedelta(hours=2))
        counts = slot_counts(ended(HOUR, everything))
        assert (len(counts), sum(counts)) == (60, 2)
        assert sum(counts[-2:]) == 1  # a minute may have begun meanwhile
        assert sum(counts[-12:-9]) == 1

    def test_is_told_by_how_it_ended(self) -> None:
        for state in (S.COMPLETED, S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED):
            make_ended(state)
        make_task("open", state=S.WORKING)
        whole = ended(HOUR, everything).whole
        assert (whole.total, whole.failed, whole.counts[S.CANCELED]) == (5, 1, 1)

    def test_is_told_by_agent_and_by_tenant_those_with_most_first(self) -> None:
        for agent, tenant in (("a", "acme"), ("b", "acme"), ("b", "other")):
            make_ended(agent=agent, tenant=tenant)
        found = ended(HOUR, everything)
        assert [(share.name, share.total) for share in found.agents] == [("b", 2), ("a", 1)]
        assert [(share.name, share.total) for share in found.tenants] == [("acme", 2), ("other", 1)]

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        make_ended(tenant="acme")
        make_ended(tenant="other", agent="secret")
        found = ended(HOUR, acme)
        assert found.whole.total == 1
        assert [share.name for share in (*found.agents, *found.tenants)] == ["demo", "acme"]

    def test_tells_how_long_it_took(self) -> None:
        for _ in range(18):
            make_ended(took=2.0)
        for _ in range(2):
            make_ended(took=300.0)
        whole = ended(DAY, everything).whole
        assert whole.p50 == pytest.approx(2.0, rel=0.07)
        assert whole.p95 == pytest.approx(300.0, rel=0.07)

    def test_takes_a_clock_set_back_for_the_shortest_there_is(self) -> None:
        make_ended(took=-5.0)
        assert ended(HOUR, everything).whole.p50 == pytest.approx(SHORTEST, rel=0.1)

    def test_shows_so_many_agents_and_no_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "TOP", 3)
        for number in range(5):
            make_ended(agent=f"agent-{number}")
        assert len(ended(HOUR, everything).agents) == 3

    def test_is_read_again_in_the_last_two_slots_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(timezone, "now", lambda: NOON)
        make_ended(ago=5 * DAY.step, tenant="acme")
        first = ended(DAY, everything)
        make_ended(S.FAILED, ago=DAY.step, tenant="acme", agent="late")
        make_ended(ago=5 * DAY.step)
        again = ended(DAY, everything, first.closed)
        assert slot_counts(again)[-6:] == [1, 0, 0, 0, 1, 0]
        assert [(share.name, share.total) for share in again.tenants] == [("acme", 2)]
        assert {share.name for share in again.agents} == {"demo", "late"}
        assert again.closed is first.closed

    def test_is_read_as_a_whole_in_the_next_slot(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(timezone, "now", lambda: NOON)
        first = ended(DAY, everything)
        make_ended(ago=5 * DAY.step)
        monkeypatch.setattr(timezone, "now", lambda: NOON + DAY.step)
        assert ended(DAY, everything, first.closed).whole.total == 1

    @pytest.mark.backend("stack")
    def test_is_read_along_its_index(self) -> None:
        like, now = make_ended(), timezone.now()
        old = [
            Task(
                public_id=f"old-{number}",
                agent="demo",
                context=like.context,
                state=like.state,
                status_at=now - number * timedelta(hours=1),
                origin_dialect="v10",
            )
            for number in range(5_000)
        ]
        Task.objects.bulk_create(old)
        with connection.cursor() as cursor:
            cursor.execute("analyze a2a_tasks_task")
            with CaptureQueriesContext(connection) as queries:
                for narrow in (everything, acme):
                    ended(HOUR, narrow)
            assert len(queries) == 8
            for query in queries.captured_queries:
                cursor.execute(f"explain {query['sql']}")
                assert "using task_ended" in str(cursor.fetchall())


seconds = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=200)


class TestPercentile:
    @given(seconds, st.sampled_from([0.5, 0.95]))
    def test_is_that_of_the_values_but_for_the_width_of_a_class(
        self, took: list[float], part: float
    ) -> None:
        classes = Counter(math.floor(math.log(value) * FINENESS) for value in took)
        exact = sorted(took)[math.ceil(part * len(took)) - 1]
        assert percentile(classes, part) == pytest.approx(exact, rel=0.07)

    def test_of_nothing_is_none(self) -> None:
        assert percentile({}, 0.5) is None


@pytest.mark.django_db
class TestHowItStands:
    def test_counts_runs_and_tasks_that_wait(self) -> None:
        for number, (state, status) in enumerate(
            [(S.WORKING, RunStatus.RUNNING), (S.SUBMITTED, RunStatus.QUEUED)] * 2
        ):
            add_run(
                make_task(f"t-{number}", state=state), status, token=str(number) * (number % 2 == 0)
            )
        make_task("asks", state=S.INPUT_REQUIRED)
        make_task("asks-more", state=S.AUTH_REQUIRED)
        found = standing(everything)
        assert (found.running, found.queued) == (2, 2)
        assert (found.waiting_input, found.waiting_credentials) == (1, 1)

    def test_tells_of_each_queue_how_long_its_oldest_has_been_due(self) -> None:
        before = timezone.now() - timedelta(minutes=5)
        add_run(make_task("a"), queue="slow", due_at=before)
        add_run(make_task("b"), queue="slow")
        add_run(make_task("c"), queue="fast", due_at=timezone.now())
        fast, slow = standing(everything).queues
        assert (slow.name, slow.queued, slow.oldest_due) == ("slow", 2, before)
        assert (fast.name, fast.queued) == ("fast", 1)

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        add_run(make_task("a"))
        make_task("asks", state=S.INPUT_REQUIRED)
        found = standing(acme)
        assert (found.queued, found.waiting_input) == (0, 0)
        assert (found.queues, found.agents, found.tenants) == ((), {}, {})

    def test_is_not_counted_beyond_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(figures, "COUNTED", 3)
        for number in range(5):
            add_run(make_task(f"t-{number}", state=S.INPUT_REQUIRED))
        found = standing(everything)
        assert (found.queued, found.waiting_input) == (3, 3)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "s", "–"),
        (1234567, "", "1,234,567"),
        (0.0421, "s", "42 ms"),
        (61, "s", "1 min 1 s"),
        (99.25, "%", "99.2 %"),
    ],
)
def test_a_figure_is_said_in_words(value: float | None, unit: str, words: str) -> None:
    assert in_words(value, unit) == words


@pytest.mark.django_db
def test_all_tasks_end_in_some_slot_of_the_week() -> None:
    for hours in range(0, 7 * 24 - 3, 7):
        make_ended(ago=timedelta(hours=hours))
    found = ended(WEEK, everything)
    assert sum(slot_counts(found)) == Task.objects.count() == found.whole.total
