"""Counts, read from rows: what is under way to a bound, what has ended by slot, agent and tenant."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from a2a_console.statistics import counts
from a2a_console.statistics.counts import (
    PERIODS,
    Ended,
    Narrow,
    Number,
    Period,
    TooMany,
    count_runs,
    count_waiting,
    limit_reads,
)
from a2a_tasks.models import PARKED, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from tests.support.console.admin.rows import add_run, make_task
from tests.support.ended_tasks import make_ended
from tests.support.rows import rows

S = TaskState
HOUR, DAY, WEEK = PERIODS["hour"], PERIODS["day"], PERIODS["week"]


def everything(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows


def acme(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return rows.filter(**{f"{by}tenant": "acme"})


def count_ended(period: Period, narrow: Narrow = everything) -> Ended:
    return counts.count_ended(period, period.begin(timezone.now()), narrow)


class TestAPeriod:
    @rows("period", PERIODS.values())
    def test_begins_at_a_round_moment_and_holds_now_in_its_last_slot(self, period: Period) -> None:
        now = datetime(2026, 11, 22, 5, 37, 41, 123456, tzinfo=UTC)
        begin = period.begin(now)
        assert begin.timestamp() % period.step.total_seconds() == 0
        last = begin + (period.slots - 1) * period.step
        assert last <= now < last + period.step


@pytest.mark.django_db
class TestWhatEnded:
    def test_is_in_the_slot_in_which_it_ended(self) -> None:
        make_ended()
        make_ended(ago=timedelta(hours=2))
        late = make_ended(ago=10 * HOUR.step).status_at
        found = {slot for slot, _ in count_ended(HOUR).slots}
        begins = HOUR.list_slots(HOUR.begin(timezone.now()))
        assert len(found) == 2
        assert max(found) in begins[-2:]  # a minute may have begun meanwhile
        assert min(found) <= late < min(found) + HOUR.step

    def test_is_told_by_how_it_ended(self) -> None:
        for state in (S.COMPLETED, S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED):
            make_ended(state)
        make_task("open", state=S.WORKING)
        expected = Counter({S.COMPLETED: 2, S.FAILED: 1, S.CANCELED: 1, S.REJECTED: 1})
        found = count_ended(HOUR)
        assert found.agents == {"demo": expected}
        assert Counter(state for _, state in found.slots.elements()) == expected

    def test_is_told_by_agent_and_by_tenant(self) -> None:
        for agent, tenant in (("a", "acme"), ("b", "acme"), ("b", "other")):
            make_ended(agent=agent, tenant=tenant)
        found = count_ended(HOUR)
        assert found.agents == {"a": {S.COMPLETED: 1}, "b": {S.COMPLETED: 2}}
        assert found.tenants == {"acme": {S.COMPLETED: 2}, "other": {S.COMPLETED: 1}}

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        make_ended(tenant="acme")
        make_ended(tenant="other", agent="secret")
        found = count_ended(HOUR, acme)
        assert found.slots.total() == 1
        assert (set(found.agents), set(found.tenants)) == ({"demo"}, {"acme"})

    def test_is_in_some_slot_of_the_week_whenever_it_ended_in_it(self) -> None:
        for hours in range(0, 7 * 24 - 3, 7):
            make_ended(ago=timedelta(hours=hours))
        found = count_ended(WEEK)
        assert found.slots.total() == Task.objects.count()
        since = WEEK.begin(timezone.now())
        assert {slot for slot, _ in found.slots} <= set(WEEK.list_slots(since))

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
                    count_ended(HOUR, narrow)
            read = [q["sql"] for q in queries.captured_queries if q["sql"].startswith("SELECT")]
            assert len(read) == 4
            for sql in read:
                cursor.execute(f"explain {sql}")
                assert "using task_ended" in str(cursor.fetchall())


class TestReadsInTime:
    @pytest.mark.backend("stack")
    @pytest.mark.django_db
    def test_are_given_up_when_they_take_too_long_and_the_next_have_all_their_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(counts, "PATIENCE", 0.05)
        with connection.cursor() as cursor:
            with pytest.raises(TooMany), limit_reads():
                cursor.execute("select pg_sleep(1)")
            cursor.execute("select pg_sleep(0.1)")

    @pytest.mark.django_db
    def test_fail_as_others_do_when_the_database_is_away(self) -> None:
        with pytest.raises(OperationalError), limit_reads():
            raise OperationalError


@pytest.mark.django_db
class TestWhatIsUnfinished:
    def test_is_counted_by_status_queue_agent_and_tenant(self) -> None:
        for number, (state, status) in enumerate(
            [(S.WORKING, RunStatus.RUNNING), (S.SUBMITTED, RunStatus.QUEUED)] * 2
        ):
            add_run(
                make_task(f"t-{number}", state=state), status, token=str(number) * (number % 2 == 0)
            )
        add_run(make_task("sleeps", state=S.WORKING), round=PARKED)
        found = {(group.status, group.agent): group.number for group in count_runs(everything)}
        assert found == {("queued", "demo"): 2, ("running", "demo"): 2, ("parked", "demo"): 1}

    def test_tells_how_long_the_oldest_of_each_queue_has_been_due(self) -> None:
        before = timezone.now() - timedelta(minutes=5)
        add_run(make_task("a"), queue="slow", due_at=before)
        add_run(make_task("b"), queue="slow")
        add_run(make_task("c"), queue="fast", due_at=timezone.now())
        found = {group.queue: group for group in count_runs(everything)}
        assert (found["slow"].number, found["slow"].oldest_due) == (2, before)
        assert found["fast"].number == 1

    def test_is_counted_by_what_it_waits_for(self) -> None:
        for number, state in enumerate([S.INPUT_REQUIRED, S.INPUT_REQUIRED, S.AUTH_REQUIRED]):
            make_task(f"t-{number}", state=state)
        assert count_waiting(S.INPUT_REQUIRED, everything) == 2
        assert count_waiting(S.AUTH_REQUIRED, everything) == 1

    def test_is_cut_to_what_there_is_for_who_asks(self) -> None:
        add_run(make_task("a"))
        make_task("asks", state=S.INPUT_REQUIRED)
        assert (count_runs(acme), count_waiting(S.INPUT_REQUIRED, acme)) == ([], 0)

    def test_is_not_counted_beyond_a_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(counts, "COUNTED", 3)
        for number in range(5):
            add_run(make_task(f"t-{number}", state=S.INPUT_REQUIRED))
        assert [group.number for group in count_runs(everything)] == [3]
        assert count_waiting(S.INPUT_REQUIRED, everything) == 3


@rows(
    ("value", "unit", "words"),
    [(None, "s", "–"), (1234567, "", "1,234,567"), (0.0421, "s", "42 ms"), (61, "s", "1 min 1 s")],
)
def test_a_figure_is_said_in_words(value: float | None, unit: str, words: str) -> None:
    assert Number("n", "N", value, unit=unit).text == words
