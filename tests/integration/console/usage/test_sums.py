"""Sums of the usage ledger: exact, by group and currency, bounded, and cut to visible rows."""

from __future__ import annotations

import csv
import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import QuerySet

from a2a_console.usage.sums import GROUPS, UsageFilter, UsageLine, sum_usage
from a2a_console.usage.table import write_csv
from a2a_tasks.models import Delegation
from tests.support.console.admin.rows import add_usage, make_task

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]
NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
SPAN = UsageFilter(since=NOON - 10 * DAY, until=NOON + DAY)


def everything(rows: QuerySet[Any], _: str) -> QuerySet[Any]:
    return rows


def summed(by: str, wanted: UsageFilter = SPAN, *, limit: int = 100) -> list[UsageLine]:
    return list(sum_usage(by, wanted, everything, limit=limit).lines)


def world() -> None:
    """Two tasks of two people in one conversation each, on two days, with two models and three kinds of cost."""
    one, other = make_task("one"), make_task("two", owner="bob", context_id="c-2", agent="tables")
    add_usage(one, "large", input_tokens=10, cost="0.1", currency="USD", at=NOON - DAY)
    add_usage(one, "large", input_tokens=5, output_tokens=2, cost="0.2", currency="USD", at=NOON)
    add_usage(one, "small", input_tokens=1, at=NOON)
    add_usage(other, "large", output_tokens=50, cost="7", currency="EUR", tenant="acme", at=NOON)
    add_usage(other, "large", input_tokens=1000, at=NOON + DAY)  # too late


class TestSums:
    @pytest.mark.parametrize(
        ("by", "expected"),
        [
            ("day", [(datetime.date(2026, 11, 19), 10, 0, "0.1", "USD"), (datetime.date(2026, 11, 20), 1, 0, None, ""), (datetime.date(2026, 11, 20), 0, 50, "7", "EUR"), (datetime.date(2026, 11, 20), 5, 2, "0.2", "USD")]),
            ("model", [("large", 0, 50, "7", "EUR"), ("large", 15, 2, "0.3", "USD"), ("small", 1, 0, None, "")]),
            ("agent", [("tables", 0, 50, "7", "EUR"), ("demo", 15, 2, "0.3", "USD"), ("demo", 1, 0, None, "")]),
            ("caller", [("bob", 0, 50, "7", "EUR"), ("alice", 15, 2, "0.3", "USD"), ("alice", 1, 0, None, "")]),
            ("tenant", [("acme", 0, 50, "7", "EUR"), ("", 15, 2, "0.3", "USD"), ("", 1, 0, None, "")]),
            ("conversation", [("c-2", 0, 50, "7", "EUR"), ("context-1", 15, 2, "0.3", "USD"), ("context-1", 1, 0, None, "")]),
            ("task", [("two", 0, 50, "7", "EUR"), ("one", 15, 2, "0.3", "USD"), ("one", 1, 0, None, "")]),
        ],
    )  # fmt: skip
    def test_are_exact_by_each_group_and_currency(self, by: str, expected: list[Any]) -> None:
        world()
        found = [
            (next(iter(line.key.values())), line.input_tokens, line.output_tokens, line.cost, line.currency)
            for line in summed(by)
        ]  # fmt: skip
        assert found == [
            (key, in_, out, None if cost is None else Decimal(cost), currency)
            for key, in_, out, cost, currency in expected
        ]
        assert set(GROUPS) >= {by}

    def test_of_a_tree_are_those_of_the_first_task_and_of_all_below_it(self) -> None:
        first, second, third, alone = (make_task(name) for name in ("1", "2", "3", "alone"))
        for depth, (parent, child) in enumerate([(first, second), (second, third)], 1):
            about = {"root": first.pk, "depth": depth, "path": "[]", "input_number": 1}
            Delegation.objects.create(parent=parent, child=child, name="call", **about)
        add_usage(second, input_tokens=5, cost="0.25", currency="EUR", at=NOON)
        add_usage(third, input_tokens=6, cost="0.50", currency="EUR", at=NOON)
        add_usage(alone, input_tokens=4, cost="9", currency="EUR", at=NOON)
        found = [(line.key, line.input_tokens, line.cost) for line in summed("tree")]
        about = {"agent": "demo", "owner": "alice", "tenant": ""}
        assert found == [
            ({"task_id": "1", "task": first.pk, **about}, 11, Decimal("0.75")),
            ({"task_id": "alone", "task": alone.pk, **about}, 4, Decimal(9)),
        ]

    def test_of_small_costs_lose_nothing(self) -> None:
        task = make_task()
        for _ in range(30):
            add_usage(task, cost="0.000000037", currency="USD", at=NOON)
        (line,) = summed("agent")
        assert line.cost == Decimal("0.00000111")

    def test_stop_at_the_limit_and_totals_do_not(self) -> None:
        world()
        found = sum_usage("model", SPAN, everything, limit=1)
        assert [line.input_tokens for line in found.lines] == [0]
        assert found.more
        assert sum(line.requests for line in found.totals) == 4
        assert not sum_usage("model", SPAN, everything, limit=3).more

    def test_are_cut_to_the_wanted_values_and_to_visible_rows(self) -> None:
        world()
        wanted = UsageFilter(since=SPAN.since, until=SPAN.until, equal={"caller": "alice"})
        assert [line.currency for line in summed("model", wanted)] == ["USD", ""]

        def narrow(rows: QuerySet[Any], by: str) -> QuerySet[Any]:
            return rows.filter(**{f"{by}tenant": "acme"})

        (line,) = sum_usage("day", SPAN, narrow, limit=10).lines
        assert line.currency == "EUR"


class TestFile:
    def test_has_exact_costs_and_no_formulas(self) -> None:
        task = make_task(owner='=HYPERLINK("http://x")')
        add_usage(task, cost="0.000000037", currency="USD", at=NOON)
        add_usage(task, "unknown", at=NOON)
        lines = list(
            csv.reader(write_csv("caller", sum_usage("caller", SPAN, everything, limit=10)))
        )
        assert lines == [
            ["caller", "tenant", "requests", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cost", "currency"],
            ["'=HYPERLINK(\"http://x\")", "", "1", "0", "0", "0", "0", "", ""],
            ["'=HYPERLINK(\"http://x\")", "", "1", "0", "0", "0", "0", "0.000000037", "USD"],
        ]  # fmt: skip
