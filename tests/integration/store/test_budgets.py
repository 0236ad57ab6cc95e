"""Budgets in the store: whose work counts, in which window, what is left, and what operators decide."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.models import (
    PARKED,
    AuditEntry,
    Budget,
    BudgetAction,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
    Run,
    RunStatus,
    Task,
)
from a2a_tasks.store import budgets
from a2a_tasks.store.budgets import Amounts, find_window
from a2a_tasks.store.parking import LAST_SECOND, Parking, park, wake
from a2a_tasks.store.records import Spender
from tests.support.store.world import accepted, held

pytestmark = pytest.mark.django_db
ANN = Spender("echo", "acme", "key:ann", 7)
BOB = Spender("echo", "acme", "key:bob", 8)
NOON = datetime.datetime(2026, 12, 31, 12, 30, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    """Other tests know of no budget."""
    yield
    budgets.put(())


def budget(**about: Any) -> Budget:
    """A budget of 100 tokens, which this process knows."""
    values = {"name": "tokens", "unit": BudgetUnit.TOKENS, "limit": Decimal(100), **about}
    made = Budget(**values)
    budgets.save(made)
    budgets.put(budgets.read_budgets())
    return made


def spend(spender: Spender, tokens: int, at: datetime.datetime = NOON) -> None:
    """Use tokens."""
    with transaction.atomic():
        budgets.add_charges(budgets.list_charges(spender, Amounts(tokens=tokens), at))


def spent(spender: Spender, at: datetime.datetime = NOON) -> list[str]:
    """The names of the budgets that have nothing left."""
    return [one.budget.name for one in budgets.find_spent(spender, at)]


class TestWhoseWorkCounts:
    @pytest.mark.parametrize(
        ("share", "others"),
        [
            (BudgetShare.ALL, {"bob", "elsewhere", "other agent", "other task"}),
            (BudgetShare.TENANT, {"bob", "other agent", "other task"}),
            (BudgetShare.CALLER, {"other agent", "other task"}),
            (BudgetShare.AGENT, {"bob", "elsewhere", "other task"}),
            (BudgetShare.TASK, set()),
        ],
    )
    def test_those_who_share_a_sum_have_nothing_left_together(
        self, share: BudgetShare, others: set[str]
    ) -> None:
        budget(share=share)
        spend(ANN, 100)
        assert spent(ANN) == ["tokens"]
        neighbours = {
            "bob": BOB,
            "elsewhere": Spender("echo", "umbrella", "key:eve", 9),
            "other agent": Spender("demo", "acme", "key:ann", 10),
            "other task": ANN._replace(task=11),
        }
        assert {name for name, other in neighbours.items() if spent(other)} == others

    @pytest.mark.parametrize(
        "only", [{"agent": "demo"}, {"tenant": "umbrella"}, {"caller": "key:bob"}]
    )
    def test_a_budget_for_others_counts_nothing(self, only: dict[str, str]) -> None:
        budget(**only)
        spend(ANN, 1000)
        assert not spent(ANN)
        assert not BudgetUse.objects.exists()

    def test_a_message_without_a_task_yet_has_no_sum_of_a_task(self) -> None:
        budget(share=BudgetShare.TASK, limit=Decimal(0))
        assert not spent(ANN._replace(task=None))
        assert spent(ANN) == ["tokens"]

    def test_a_disabled_budget_limits_nothing(self) -> None:
        budget(enabled=False, limit=Decimal(0))
        assert not spent(ANN)


class TestWindows:
    def test_a_new_day_begins_with_nothing_used(self) -> None:
        budget(window=BudgetWindow.DAY)
        spend(ANN, 100)
        assert spent(ANN)
        assert not spent(ANN, NOON + datetime.timedelta(hours=12))

    def test_a_budget_that_never_begins_anew_stays_spent(self) -> None:
        budget()
        spend(ANN, 100)
        assert spent(ANN, NOON + datetime.timedelta(days=4000))

    @given(
        at=st.datetimes(
            datetime.datetime(2020, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
            datetime.datetime(2099, 1, 1),  # noqa: DTZ001 - the same
            timezones=st.timezones(),
        ),
        window=st.sampled_from([BudgetWindow.HOUR, BudgetWindow.DAY, BudgetWindow.MONTH]),
    )
    def test_windows_follow_each_other_without_gaps(
        self, at: datetime.datetime, window: BudgetWindow
    ) -> None:
        asked = Budget(window=window)
        since, until = find_window(asked, at)
        assert until is not None
        assert since <= at < until
        assert find_window(asked, until)[0] == until
        assert find_window(asked, since) == (since, until)


class TestAmounts:
    def test_each_unit_counts_its_own(self) -> None:
        for unit in BudgetUnit:
            budget(name=unit.value, unit=unit, limit=Decimal(1000))
        amounts = Amounts(tokens=30, calls=2, cost=Decimal("0.000125"), currency="USD", seconds=1.5)
        with transaction.atomic():
            budgets.add_charges(budgets.list_charges(ANN, amounts, NOON))
        used = {use.budget.name: use.used for use in BudgetUse.objects.select_related("budget")}
        assert used == {
            "tokens": 30,
            "calls": 2,
            "cost": Decimal("0.000125"),
            "seconds": Decimal("1.5"),
        }

    def test_a_cost_in_another_currency_does_not_count(self) -> None:
        budget(unit=BudgetUnit.COST, currency="EUR")
        amounts = Amounts(cost=Decimal(1000), currency="USD")
        budgets.add_charges(budgets.list_charges(ANN, amounts, NOON))
        assert not spent(ANN)

    def test_charges_of_several_runs_are_summed(self) -> None:
        made = budget(share=BudgetShare.ALL)
        charges = [
            *budgets.list_charges(ANN, Amounts(tokens=30), NOON),
            *budgets.list_charges(BOB, Amounts(tokens=12), NOON),
        ]
        budgets.add_charges(charges)
        assert BudgetUse.objects.get(budget=made).used == 42

    def test_a_charge_of_a_deleted_budget_is_forgotten(self) -> None:
        made = budget()
        charges = budgets.list_charges(ANN, Amounts(tokens=30), NOON)
        budgets.delete(made)
        with transaction.atomic():
            budgets.add_charges(charges)
        assert not BudgetUse.objects.exists()

    def test_no_budget_costs_no_query(self, django_assert_num_queries: Any) -> None:
        budgets.put(())
        with django_assert_num_queries(0):
            assert not budgets.find_spent(ANN)
            budgets.add_charges(budgets.list_charges(ANN, Amounts(tokens=1), NOON))

    def test_a_limit_is_reached_by_the_last_unit(self) -> None:
        budget()
        spend(ANN, 99)
        assert not spent(ANN)
        spend(ANN, 1)
        assert spent(ANN)


class TestOperators:
    def park(self, use: BudgetUse) -> Run:
        """A run that waits for this sum."""
        run = Run.objects.get(pk=accepted().run)
        later = timezone.now() + datetime.timedelta(days=1)
        Run.objects.filter(pk=run.pk).update(
            status=RunStatus.QUEUED, round=PARKED, due_at=later, waits_for_budget=use.pk
        )
        return run

    def ask(self, **about: Any) -> BudgetUse:
        """A spent budget about which operators are asked."""
        budget(action=BudgetAction.ASK, **about)
        spend(ANN, 100)
        (found,) = budgets.find_spent(ANN, NOON)
        return BudgetUse.objects.get(pk=budgets.begin_wait(found, 7) or 0)

    def test_are_asked_once(self) -> None:
        use = self.ask()
        (found,) = budgets.find_spent(ANN, NOON)
        assert budgets.begin_wait(found, 8) == use.pk
        (asking,) = budgets.list_asking()
        assert asking.asked_for == 7

    def test_who_allow_more_let_the_waiting_runs_go_on(self) -> None:
        use = self.ask()
        run = self.park(use)
        assert budgets.allow(use.pk, Decimal(50), "it is worth it")
        assert not spent(ANN)
        assert not budgets.list_asking().exists()
        wake()
        run.refresh_from_db()
        assert not run.is_parked
        spend(ANN, 50)
        assert spent(ANN)
        entry = AuditEntry.objects.filter(action="budget.allow").get()
        assert (entry.object, "it is worth it" in entry.detail) == ("tokens", True)

    def test_who_decided_before_a_run_is_parked_keep_it_from_waiting(self) -> None:
        use = self.ask()
        run = held()
        wait = Parking(run, "ask 3", timezone.now().timestamp() + 3600, budget=use.pk)
        budgets.allow(use.pk, Decimal(50))
        assert not park(wait)
        assert Run.objects.get(pk=run.key).status == RunStatus.RUNNING
        spend(ANN, 50)
        assert park(wait)
        assert Run.objects.get(pk=run.key).waits_for_budget == use.pk

    def test_who_refuse_are_not_asked_again(self) -> None:
        use = self.ask()
        run = self.park(use)
        assert budgets.refuse(use.pk)
        (found,) = budgets.find_spent(ANN, NOON)
        assert found.use.refused
        budgets.begin_wait(found, 7)
        assert not budgets.list_asking().exists()
        wake()
        run.refresh_from_db()
        assert not run.is_parked

    @pytest.mark.parametrize("amount", ["0", "-1", "1e20", "NaN"])
    def test_cannot_allow_what_is_no_amount(self, amount: str) -> None:
        use = self.ask()
        with pytest.raises((ValueError, ArithmeticError)):
            budgets.allow(use.pk, Decimal(amount))

    def test_who_raise_the_limit_let_the_waiting_runs_look_again(self) -> None:
        use = self.ask()
        run = self.park(use)
        made = Budget.objects.get()
        made.limit = Decimal(200)
        budgets.save(made)
        wake()
        run.refresh_from_db()
        assert not run.is_parked

    def test_who_delete_a_budget_let_the_waiting_runs_go_on(self) -> None:
        run = self.park(self.ask())
        budgets.delete(Budget.objects.get())
        wake()
        run.refresh_from_db()
        assert not run.is_parked

    @pytest.mark.parametrize(
        "change",
        [{"limit": Decimal(101)}, {"window": BudgetWindow.DAY}, {"enabled": False}],
        ids=str,
    )
    def test_who_change_a_budget_are_asked_no_more_and_no_run_waits_for_what_it_was(
        self, change: dict[str, Any]
    ) -> None:
        use = self.ask()
        run = held()
        (known,) = budgets.find_spent(ANN, NOON)
        Budget.objects.update(**change)
        assert not budgets.list_asking().exists()
        assert budgets.begin_wait(known, run.task) is None
        assert not park(Parking(run, "ask 3", LAST_SECOND, budget=use.pk))

    def test_are_asked_no_more_once_the_window_has_ended(self) -> None:
        budget(action=BudgetAction.ASK, window=BudgetWindow.HOUR)
        spend(ANN, 100, timezone.now())
        (found,) = budgets.find_spent(ANN)
        budgets.begin_wait(found, 7)
        assert budgets.list_asking().exists()
        BudgetUse.objects.update(since=F("since") - datetime.timedelta(hours=1))
        assert not budgets.list_asking().exists()

    def test_are_asked_no_more_once_the_only_task_of_the_sum_has_ended(self) -> None:
        task = accepted().task
        budget(action=BudgetAction.ASK, share=BudgetShare.TASK)
        spender = ANN._replace(task=task)
        spend(spender, 100)
        (found,) = budgets.find_spent(spender, NOON)
        budgets.begin_wait(found, task)
        assert budgets.list_asking().exists()
        Task.objects.filter(pk=task).update(state="TASK_STATE_CANCELED")
        assert not budgets.list_asking().exists()

    def test_decide_nothing_about_a_sum_that_is_gone(self) -> None:
        assert not budgets.allow(10**9, Decimal(1))
        assert not budgets.refuse(10**9)

    def test_cannot_pause_what_never_begins_anew(self) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            budget(action=BudgetAction.PAUSE)


class TestRetention:
    def test_removes_sums_of_old_windows_and_of_old_tasks_only(self) -> None:
        budget(name="day", window=BudgetWindow.DAY)
        budget(name="task", share=BudgetShare.TASK)
        budget(name="ever")
        spend(ANN, 1)
        long_ago = timezone.now() - budgets.KEPT - datetime.timedelta(days=1)
        BudgetUse.objects.update(changed_at=long_ago)
        assert budgets.forget_old(10) == 2
        assert BudgetUse.objects.get().budget.name == "ever"


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_spenders_at_once_lose_nothing() -> None:
    made = budget(share=BudgetShare.ALL, limit=Decimal(10**6))

    def work(number: int) -> None:
        try:
            for _ in range(10):
                spend(ANN._replace(caller=f"key:{number}"), 3)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert BudgetUse.objects.get(budget=made).used == 240
