"""Parked runs in the store: rows that hold nothing, that no claim takes, and that come back when their wait is over."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from a2a_tasks import pubsub
from a2a_tasks.models import PARKED, Run, RunStatus, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import parking, runs
from a2a_tasks.store.backend import fair_queue
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.parking import Parking, park, wake, wake_next
from a2a_tasks.store.records import ClaimedRun, LeaseLost
from a2a_tasks.store.replies import reply
from tests.support.store.world import ALICE, Pen, accepted, at_once, claim, expire, held, new

pytestmark = pytest.mark.django_db
LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def parked(task: str = "task-1", until: datetime.datetime = LATER, **about: Any) -> ClaimedRun:
    """A run that is parked."""
    waits_for = about.pop("awaits", None)
    run = held(task, **about)
    park(Parking(run, "night", until.timestamp(), 3, waits_for))
    return run


def row(run: ClaimedRun) -> Run:
    """The row of a run."""
    return Run.objects.get(pk=run.key)


def hints(work: Callable[[], Any]) -> list[pubsub.Hint]:
    """The hints about due runs while this is done."""
    heard: list[pubsub.Hint] = []
    with pubsub.listen(heard.append):
        work()
    return [hint for hint in heard if isinstance(hint, pubsub.RunQueued)]


class TestParking:
    def test_gives_up_lease_and_token_and_no_attempt(self) -> None:
        run = parked()
        stored = row(run)
        assert (stored.status, stored.is_parked, stored.token) == (RunStatus.QUEUED, True, "")
        assert (stored.attempt, stored.parked_in, stored.said) == (0, "night", 3)
        assert (stored.lease_until, stored.due_at) == (None, LATER)
        assert Task.objects.get().run_token == ""
        with pytest.raises(LeaseLost):
            Pen(run).end()

    def test_is_refused_to_who_lost_its_lease(self) -> None:
        run = held()
        expire(run.key)
        assert runs.reclaim_expired(max_attempts=3) == 1
        (again,) = claim()
        with pytest.raises(LeaseLost):
            park(Parking(run, "night", LATER.timestamp()))
        assert (row(again).status, row(again).parked_in) == (RunStatus.RUNNING, "")
        Pen(again).end()

    def test_is_refused_after_the_task_has_ended(self) -> None:
        run = held()
        cancel(ALICE, "task-1")
        with pytest.raises(LeaseLost):
            park(Parking(run, "night", LATER.timestamp()))
        assert row(run).status == RunStatus.CANCELED

    def test_until_the_end_of_time_is_as_long_as_a_moment_can_tell(self) -> None:
        run = held()
        park(Parking(run, "night", 1e30))
        assert row(run).due_at.year == 9999

    def test_takes_no_part_in_claims_counts_and_rounds(self) -> None:
        parked("task-1", PAST, quota_key="a")  # it is due, and nobody has woken it
        parked("task-2", quota_key="b")
        assert claim() == []
        assert runs.count_waiting("agents", 10) == 0
        assert runs.count_unfinished("a", 10) == 0
        assert runs.count_by_status() == {"queued": 0, "behind": 0, "running": 0, "parked": 2}
        accepted("task-3", quota_key="a")
        accepted("task-4", quota_key="c")
        begun = dict(Run.objects.filter(round__lt=PARKED).values_list("task__public_id", "round"))
        assert begun == {"task-3": 1, "task-4": 2}

    def test_a_later_message_of_the_share_joins_no_round_behind_it(self) -> None:
        parked("task-1", quota_key="a")
        reply(new("task-1", quota_key="a", text="more"))
        assert Run.objects.latest("pk").is_behind
        accepted("task-2", quota_key="a")
        assert Run.objects.latest("pk").round == 1

    def test_holds_back_later_messages_of_its_task_and_of_its_conversation(self) -> None:
        first = parked("task-1", PAST, ordered=True)
        reply(new("task-1", text="more", ordered=True))
        accepted("task-2", ordered=True)
        assert claim() == []
        wake()
        (again,) = claim()
        assert (again.key, again.attempt, again.parked_in, again.said) == (first.key, 1, "night", 3)

    def test_a_cancel_ends_it_and_nothing_wakes_it(self) -> None:
        run = parked()
        cancel(ALICE, "task-1")
        assert row(run).status == RunStatus.CANCELED
        assert not wake()
        assert claim() == []


class TestWaking:
    def test_takes_those_whose_time_has_come(self) -> None:
        due, other = parked("task-1", PAST), parked("task-2")
        heard = hints(wake)
        assert [claimed.key for claimed in claim()] == [due.key]
        assert row(other).is_parked
        assert heard == [pubsub.RunQueued("agents")]

    def test_takes_those_whose_task_has_ended_or_asks_or_is_gone(self) -> None:
        pens = {name: Pen(held(name)) for name in ("ends", "asks", "goes on")}
        awaited = {name: Task.objects.get(public_id=name).pk for name in pens}
        for name, key in {**awaited, "gone": 10**9}.items():
            parked(f"waits until it {name}", awaits=key)
        pens["ends"].end(TaskState.COMPLETED)
        pens["asks"].end(TaskState.INPUT_REQUIRED)
        wake()
        assert not claim()  # they have ended long ago
        assert not wake_next(0)
        claimed = {run.task_id.removeprefix("waits until it ") for run in claim()}
        assert claimed == {"ends", "asks", "gone"}
        assert not Run.objects.filter(due_at__gt=Now()).exclude(round=PARKED).exists()

    def test_names_no_more_tasks_when_more_have_ended(
        self,
    ) -> None:
        awaited = accepted("awaited").task
        parked("waits", awaits=awaited)
        found = list[tuple[int, int]]()
        for count in (1, 20):
            for number in range(count):
                Pen(held(f"{count} {number}")).end(TaskState.COMPLETED)
            Task.objects.exclude(pk=awaited).update(status_at=Now())
            with CaptureQueriesContext(connection) as queries:
                wake()
            found.append((len(queries), sum(len(query["sql"]) for query in queries)))
        assert found[0] == found[1]

    def test_lets_shares_take_turns(self) -> None:
        for number in range(4):
            parked(f"a-{number}", PAST, quota_key="a")
        parked("b-0", PAST, quota_key="b")
        accepted("c-0", quota_key="c")
        wake()
        assert {run.task_id for run in claim(3)} == {"a-0", "b-0", "c-0"}

    def test_goes_on_in_portions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parking, "BATCH", 2)
        for number in range(3):
            parked(f"task-{number}", PAST)
        assert wake()
        assert not wake()
        assert len(claim()) == 3

    def test_takes_up_what_an_older_version_has_queued_behind_all_rounds(self) -> None:
        accepted()
        Run.objects.update(round=PARKED + 1)  # it counts from the last round of the share
        wake()
        assert len(claim()) == 1


@pytest.mark.backend("stack")
class TestSeveralProcesses:
    def test_read_no_further_than_the_last_round(self) -> None:
        parked("task-1", quota_key="a")
        accepted("task-2", quota_key="b")
        assert fair_queue.find_last_eligible_round("agents", ["b"]) is None

    def test_find_them_by_an_index_among_many_that_wait(self) -> None:
        task = accepted().task
        make: dict[str, Any] = {"task_id": task, "input_number": 1, "status": RunStatus.QUEUED}
        Run.objects.bulk_create(Run(**make, queue="agents", round=n) for n in range(2000))
        Run.objects.bulk_create(
            Run(**make, queue="agents", round=PARKED, due_at=LATER, awaits=n if n < 20 else None)
            for n in range(2000)
        )
        with connection.cursor() as cursor:
            cursor.execute("analyze a2a_tasks_run")
        assert "run_parked" in parking._list_due().explain()
        assert "run_awaiting" in parking._list_settled().explain()

    @pytest.mark.django_db(transaction=True)
    def test_leave_locked_rows_alone(self) -> None:
        run = parked(until=PAST)
        there, go = threading.Event(), threading.Event()

        def lock() -> None:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=run.key)
                there.set()
                go.wait(30)
            connection.close()

        thread = threading.Thread(target=lock)
        thread.start()
        there.wait(30)
        wake()
        assert row(run).is_parked
        go.set()
        thread.join()
        wake()
        assert not row(run).is_parked

    @pytest.mark.django_db(transaction=True)
    def test_wake_each_run_once_and_one_of_them_carries_it(self) -> None:
        for number in range(20):
            parked(f"task-{number}", PAST)
        assert at_once(*[wake] * 4) == [False] * 4
        taken = list[str]()
        for claimed in at_once(*[claim] * 4):
            assert isinstance(claimed, list)
            taken += [run.task_id for run in claimed]
        assert sorted(taken) == sorted(f"task-{number}" for number in range(20))
