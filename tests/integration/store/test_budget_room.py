"""The room of budgets: near the limit it is reserved, and as many waiting runs are woken as it suffices for."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from a2a_tasks.agents.usage import make_report
from a2a_tasks.models import (
    PARKED,
    Budget,
    BudgetAction,
    BudgetHold,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
    Run,
    RunStatus,
    Usage,
)
from a2a_tasks.store import budget_room, budgets, clock, usage
from a2a_tasks.store.budget_room import Admission, admit_many
from a2a_tasks.store.budgets import Amounts, charge_many, find_window
from a2a_tasks.store.parking import LAST_SECOND, Parking, park, wake
from a2a_tasks.store.records import ClaimedRun, Spender, UsageEntry
from tests.support.execution.waiting import eventually, somebody_waits_for_a_row
from tests.support.store.world import accepted, held

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """Other tests know of no budget."""
    yield
    budgets.put(())


def budget(limit: float, **about: Any) -> Budget:
    """A budget of calls, which this process knows."""
    values = {"name": "calls", "unit": BudgetUnit.CALLS, "limit": Decimal(str(limit)), **about}
    made = Budget(**values)
    budgets.save(made)
    budgets.put(budgets.read_budgets())
    return made


def spender_of(run: ClaimedRun) -> Spender:
    """The spender of a run."""
    return Spender(run.scope.agent, "acme", "key:ann", run.task, run.key, run.token)


def going(count: int) -> list[Spender]:
    """So many runs under way."""
    return [spender_of(held(f"going-{uuid.uuid4()}")) for _ in range(count)]


def admit(spenders: Sequence[Spender]) -> list[Spender]:
    """Those of these runs that may begin work."""
    found = zip(spenders, admit_many(spenders), strict=True)
    return [one for one, answer in found if isinstance(answer, Admission) and not answer.spent]


def report(spender: Spender, calls: int = 1) -> None:
    """A report of this run."""
    assert charge_many([(spender, Amounts(calls=calls, tokens=100 * calls))]) == [None]


def use() -> BudgetUse:
    """The newest sum."""
    return BudgetUse.objects.order_by("-since")[0]


class TestNearTheLimit:
    def test_as_many_runs_are_admitted_as_the_room_suffices_for(self) -> None:
        budget(10)
        runs = going(15)
        assert admit(runs) == runs[:10]
        (answer,) = admit_many(runs[10:11])
        assert isinstance(answer, Admission)
        (waits,) = answer.spent
        assert waits.reserved
        assert not waits.refuses  # the others may report less

    def test_a_report_gives_back_what_was_reserved(self) -> None:
        budget(10)
        runs = going(15)
        admit(runs)
        for one in runs[:4]:
            report(one)
        assert admit(runs[10:]) == []
        assert BudgetHold.objects.count() == 6
        for one in runs[4:10]:
            report(one, calls=0)  # nothing was used: it is still reserved
        assert admit(runs[10:]) == []

    def test_a_run_needs_no_second_reservation_for_its_next_step(self) -> None:
        budget(2)
        runs = going(3)
        assert admit(runs) == runs[:2]
        assert admit([runs[0], runs[0]]) == [runs[0], runs[0]]
        assert BudgetHold.objects.count() == 2

    @pytest.mark.parametrize(
        "change",
        [
            {"status": RunStatus.ENDED, "token": "", "lease_until": None},
            {"status": RunStatus.QUEUED, "token": "", "lease_until": None},
            {"token": "the next attempt"},
        ],
        ids=["ends", "dies", "is tried again"],
    )
    def test_a_run_that_has_lost_its_lease_holds_nothing(self, change: dict[str, Any]) -> None:
        budget(1)
        first, second = going(2)
        assert admit([first, second]) == [first]
        Run.objects.filter(pk=first.run).update(**change)
        assert admit([second]) == [second]

    def test_a_parked_run_holds_nothing(self) -> None:
        budget(1)
        run = held("first")
        (second,) = going(1)
        assert admit([spender_of(run)])
        assert park(Parking(run, "sleep", LAST_SECOND))
        assert admit([second]) == [second]

    def test_a_call_that_takes_very_long_keeps_nobody_waiting(self) -> None:
        budget(1)
        first, second = going(2)
        admit([first])
        old = clock.now() - datetime.timedelta(seconds=budget_room.HOLD_SECONDS + 1)
        BudgetHold.objects.update(made_at=old)
        assert admit([second]) == [second]

    def test_the_mean_of_a_report_is_reserved(self) -> None:
        budget(1000, unit=BudgetUnit.TOKENS)
        first, *others = going(9)
        report(first, calls=3)  # 300 tokens
        assert admit(others) == others[:3]
        assert {hold.amount for hold in BudgetHold.objects.all()} == {300}

    def test_a_new_window_begins_with_the_mean_of_the_one_before(self) -> None:
        budget(1000, unit=BudgetUnit.TOKENS, window=BudgetWindow.HOUR)
        first, *others = going(9)
        report(first, calls=5)
        before = use().since - datetime.timedelta(hours=1)
        BudgetUse.objects.update(since=before)
        assert admit(others) == others[:2]

    def test_far_from_the_limit_nothing_is_reserved(self) -> None:
        budget(budget_room.NEAR + 1)
        assert len(admit(going(2))) == 2
        assert not BudgetHold.objects.exists()

    def test_the_sum_of_a_task_needs_no_reservation(self) -> None:
        budget(1, share=BudgetShare.TASK)
        assert len(admit(going(2))) == 2
        assert not BudgetHold.objects.exists()

    def test_a_budget_that_was_deleted_meanwhile_stops_nobody(self) -> None:
        budget(1)
        Budget.objects.all().delete()
        assert len(admit(going(2))) == 2

    def test_many_runs_are_asked_for_with_few_queries(
        self, django_assert_max_num_queries: Any
    ) -> None:
        budget(10_000)
        runs = going(20)
        clock.now()
        with django_assert_max_num_queries(2):
            admit_many(runs)

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_processes_that_ask_at_once_reserve_no_more_than_there_is(self) -> None:
        budget(10)
        runs = going(24)
        together = threading.Barrier(8)

        def ask(mine: Sequence[Spender]) -> int:
            try:
                together.wait(10)
                return sum(len(admit([one])) for one in mine)
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(ask, [runs[n::8] for n in range(8)])) == 10


class TestSeconds:
    def test_last_for_all_runs_under_way_or_for_one_task(self) -> None:
        made = budget(60, unit=BudgetUnit.SECONDS)
        runs = going(3)
        (answer,) = admit_many(runs[:1])
        assert isinstance(answer, Admission)
        assert answer.seconds == 20
        made.share = BudgetShare.TASK
        budgets.save(made)
        budgets.put(budgets.read_budgets())
        (answer,) = admit_many(runs[:1])
        assert isinstance(answer, Admission)
        assert answer.seconds == 60


class TestWaking:
    def wait(self, key: int, count: int) -> list[int]:
        """So many runs that wait for this sum."""
        found = []
        for number in range(count):
            run = accepted(f"waits-{key}-{number}").run
            Run.objects.filter(pk=run).update(
                status=RunStatus.QUEUED,
                round=PARKED,
                due_at=clock.moment(LAST_SECOND),
                waits_for_budget=key,
            )
            found.append(run)
        BudgetUse.objects.filter(pk=key).update(waited=True)
        return found

    def waiting(self) -> int:
        """How many runs wait."""
        return Run.objects.filter(round=PARKED).count()

    def spent(self, limit: int = 10, **about: Any) -> BudgetUse:
        """A sum of a budget that asks, with nothing left."""
        budget(limit, **{"action": BudgetAction.ASK, **about})
        (run,) = going(1)
        for _ in range(limit):
            report(run)
        return use()

    def test_nobody_is_woken_while_nothing_is_left(self) -> None:
        self.wait(self.spent().pk, 3)
        wake()
        assert self.waiting() == 3

    def test_as_many_are_woken_as_an_operator_allows(self) -> None:
        first = self.wait(key := self.spent().pk, 12)[:5]
        budgets.allow(key, Decimal(5))
        wake()
        wake()
        assert set(Run.objects.filter(pk__in=first).values_list("round", flat=True)) != {PARKED}
        assert self.waiting() == 7

    def test_who_was_woken_and_never_begins_keeps_nobody_waiting_for_long(self) -> None:
        self.wait(key := self.spent().pk, 12)
        budgets.allow(key, Decimal(5))
        wake()
        old = clock.now() - datetime.timedelta(seconds=budget_room.WOKEN_SECONDS + 1)
        BudgetHold.objects.update(made_at=old)
        wake()
        assert self.waiting() == 2

    def test_operators_are_asked_again_once_that_is_used_up(self) -> None:
        self.wait(key := self.spent().pk, 12)
        budgets.allow(key, Decimal(5))
        wake()
        assert not budgets.list_asking().exists()
        for one in going(5):
            report(one)
        wake()
        assert budgets.list_asking().exists()
        assert self.waiting() == 7

    def test_all_go_on_in_the_end_however_little_is_allowed_at_once(self) -> None:
        self.wait(key := self.spent().pk, 12)
        for _ in range(6):
            budgets.allow(key, Decimal(2))
            wake()
            for one in going(2):
                report(one)
            BudgetHold.objects.all().delete()  # they have begun
        assert self.waiting() == 0
        wake()
        assert not use().waited

    @pytest.mark.parametrize("how", ["refused", "disabled", "much"])
    def test_all_are_woken_if_none_has_to_wait(self, how: str) -> None:
        self.wait(key := self.spent().pk, 12)
        if how == "refused":
            budgets.refuse(key)
        elif how == "disabled":
            Budget.objects.update(enabled=False)
        else:
            budgets.allow(key, Decimal(10**6))
        wake()
        assert self.waiting() == 0

    def test_who_waited_for_reports_of_others_is_refused_if_these_used_up_all(self) -> None:
        key = self.spent(action=BudgetAction.REFUSE).pk
        self.wait(key, 3)
        wake()
        assert self.waiting() == 0

    def test_a_new_window_wakes_as_many_as_it_has_room_for(self) -> None:
        key = self.spent(4, action=BudgetAction.PAUSE, window=BudgetWindow.HOUR).pk
        self.wait(key, 12)
        wake()
        assert self.waiting() == 12
        BudgetUse.objects.update(since=use().since - datetime.timedelta(hours=1))
        wake()
        wake()
        assert self.waiting() == 8

    def test_who_finds_no_room_in_the_new_window_waits_for_the_next_one(self) -> None:
        key = self.spent(4, action=BudgetAction.PAUSE, window=BudgetWindow.HOUR).pk
        self.wait(key, 12)
        late = clock.now() - datetime.timedelta(seconds=90)
        Run.objects.filter(round=PARKED).update(due_at=late)
        wake()
        assert self.waiting() == 0  # they look, and are parked until the end of that one

    def test_a_run_is_not_parked_if_there_is_room_now(self) -> None:
        key = self.spent().pk
        run = held("late")
        budgets.allow(key, Decimal(1))
        assert not park(Parking(run, "ask", LAST_SECOND, budget=key))
        (other,) = going(1)
        assert admit([other])
        assert park(Parking(run, "ask", LAST_SECOND, budget=key))
        assert use().waited

    def test_sums_that_runs_wait_for_are_kept(self) -> None:
        key = self.spent(window=BudgetWindow.DAY).pk
        self.wait(key, 1)
        long_ago = timezone.now() - budgets.KEPT - datetime.timedelta(days=1)
        BudgetUse.objects.update(changed_at=long_ago, asked_at=None)
        assert budgets.forget_old(10) == 0


class TestReports:
    def entry(self, run: ClaimedRun) -> UsageEntry:
        """A report of one call."""
        made = make_report("m", None, "USD", requests=1)
        assert made
        return UsageEntry(run, spender_of(run), made)

    def test_are_charged_once_although_one_of_them_comes_again(self) -> None:
        budget(10)
        run = held()
        first, second = self.entry(run), self.entry(run)
        usage.write_many([[first]])
        usage.write_many([[first, second]])
        assert (int(use().used), use().charges, Usage.objects.count()) == (2, 2, 2)

    @pytest.mark.backend("stack")
    @pytest.mark.django_db(transaction=True)
    def test_are_charged_once_although_the_first_commit_waits(self) -> None:
        budget(10)
        entry = self.entry(held())
        written, commit = threading.Event(), threading.Event()

        def write_slowly() -> None:
            try:
                with transaction.atomic():
                    usage._write({entry.report.id: entry})
                    written.set()
                    commit.wait(10)
            finally:
                connection.close()

        def write_again() -> None:
            try:
                usage.write_many([[entry]])
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(write_slowly)
            written.wait(10)
            again = pool.submit(write_again)
            eventually(somebody_waits_for_a_row)
            commit.set()
            first.result(10)
            again.result(10)
        assert (int(use().used), Usage.objects.count()) == (1, 1)


def test_a_window_is_that_of_the_databases_clock() -> None:
    made = budget(10, window=BudgetWindow.HOUR)
    (run,) = going(1)
    report(run)
    assert use().since == find_window(made, clock.now())[0]
