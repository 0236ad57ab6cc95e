"""The database's clock: a process whose own clock is wrong agrees with all others."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from a2a_tasks.access import api_keys
from a2a_tasks.models import Budget, BudgetUnit, BudgetUse, BudgetWindow
from a2a_tasks.store import budgets, clock, event_log, file_links, runs
from a2a_tasks.store.budgets import Amounts, charge_many, find_window
from a2a_tasks.store.records import Spender
from tests.support.store.clocks import wrong_clock
from tests.support.store.world import accepted

pytestmark = [pytest.mark.django_db, pytest.mark.backend("stack")]


@pytest.fixture(autouse=True, params=[1, -1], ids=["ahead", "behind"])
def wrong(request: pytest.FixtureRequest) -> Iterator[None]:
    """This process's clock is wrong by an hour."""
    with wrong_clock(request.param):
        yield
    budgets.put(())


def right_now() -> datetime.datetime:
    """The time of the database."""
    with connection.cursor() as cursor:
        cursor.execute("select clock_timestamp()")
        found: datetime.datetime = cursor.fetchone()[0]
    return found


def is_near(moment: datetime.datetime) -> bool:
    """Whether it is the present time of the database."""
    return abs(moment - right_now()) < datetime.timedelta(seconds=30)


def test_the_time_is_the_databases() -> None:
    assert is_near(clock.now())
    assert is_near(event_log.now())


def test_a_clock_that_jumps_is_noticed() -> None:
    clock.now()
    with wrong_clock(5):
        assert is_near(clock.now())
    assert is_near(clock.now())


def test_an_estimate_reads_nothing(django_assert_num_queries: Any) -> None:
    clock.now()
    with django_assert_num_queries(0):
        found = clock.moment(clock.estimate()), clock.now()  # it was read a moment ago
    assert all(map(is_near, found))


def test_work_counts_in_the_right_window_of_a_budget() -> None:
    made = Budget(name="calls", unit=BudgetUnit.CALLS, limit=Decimal(9), window=BudgetWindow.HOUR)
    budgets.save(made)
    budgets.put(budgets.read_budgets())
    charge_many([(Spender("echo", "acme", "key:ann"), Amounts(calls=9))])
    since, until = find_window(made, right_now())
    assert BudgetUse.objects.get().since == since
    (spent,) = budgets.find_spent(Spender("echo", "acme", "key:ann"))
    assert spent.until == until
    assert until is not None
    assert abs(spent.seconds_left - (until - right_now()).total_seconds()) < 30


def test_a_key_ends_when_it_should() -> None:
    soon = right_now() + datetime.timedelta(minutes=30)
    issued = api_keys.issue("ann", expires_at=soon)
    _, prefix, secret = issued.key.split("_", 2)
    found = api_keys._look_up(prefix, api_keys._digest(secret))
    assert found.until == soon.timestamp()


def test_the_url_of_a_file_ends_when_it_should() -> None:
    clock.now()
    link = file_links.make_linker("echo", "https://host.example", "key:ann")("f")
    expires = int(link.partition("expires=")[2].partition("&")[0])
    assert 0 < expires - right_now().timestamp() <= 2 * 3600


def test_the_oldest_run_of_a_queue_is_as_old_as_it_is() -> None:
    accepted()
    assert runs.measure_queue("agents")[1] < 30
