"""Costs of reports without one: by the setting, by the package's own table, else unknown; always exact."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks.agents.usage import UsageReport
from a2a_tasks.checks import check_settings
from a2a_tasks.store import prices
from a2a_tasks.store.prices import find_cost

pytestmark = pytest.mark.quick_on("sqlite")
PRICES = """{
  "gpt-4o-mini": {"input": 2.5, "output": 10, "cached": 1.25},
  "own*": {"input": 0.1, "currency": "EUR"},
  "own-large*": {"input": 0.3, "request": 0.01}
}"""


def cost_of(model: str, **figures: Any) -> tuple[Decimal | None, str]:
    return find_cost(UsageReport(id=uuid.uuid4(), step="", model=model, **figures))


class TestCost:
    def test_of_the_agent_wins(self, settings: Settings) -> None:
        settings.A2A_PRICES = PRICES
        assert cost_of("gpt-4o-mini", cost=Decimal(7), currency="CHF") == (Decimal(7), "CHF")

    def test_is_that_of_the_setting(self, settings: Settings) -> None:
        settings.A2A_PRICES = PRICES
        found = cost_of("gpt-4o-mini", input_tokens=1000, cached_tokens=400, output_tokens=3)
        assert found == (Decimal("0.00203"), "USD")
        assert cost_of("own-small", input_tokens=7) == (Decimal("0.0000007"), "EUR")

    def test_has_a_price_of_its_own_for_what_is_written_to_a_cache(
        self, settings: Settings
    ) -> None:
        settings.A2A_PRICES = '{"m": {"input": 2, "cached": 1, "cache_write": 4}}'
        used = {"input_tokens": 1000, "cached_tokens": 400, "cache_write_tokens": 500}
        assert cost_of("m", **used) == (Decimal("0.0026"), "USD")
        settings.A2A_PRICES = '{"m": {"input": 2}}'
        assert cost_of("m", **used) == (Decimal("0.002"), "USD")

    def test_of_claude_with_a_cache_is_that_of_the_package(self, settings: Settings) -> None:
        settings.A2A_PRICES = ""
        read = {"input_tokens": 5_012, "cached_tokens": 5_000, "output_tokens": 3}
        assert cost_of("claude-sonnet-4-5", **read) == (Decimal("0.001581"), "USD")
        written = {"input_tokens": 5_012, "cache_write_tokens": 5_000, "output_tokens": 3}
        assert cost_of("claude-sonnet-4-5", **written) == (Decimal("0.018831"), "USD")

    def test_is_by_the_longest_pattern_that_fits(self, settings: Settings) -> None:
        settings.A2A_PRICES = PRICES
        assert cost_of("own-large-2", input_tokens=10) == (Decimal("0.010003"), "USD")

    def test_has_no_more_cached_tokens_than_input_tokens(self, settings: Settings) -> None:
        settings.A2A_PRICES = PRICES
        found = cost_of("gpt-4o-mini", input_tokens=4, cached_tokens=400)
        assert found == (Decimal("0.000005"), "USD")
        settings.A2A_PRICES = ""
        assert cost_of("gpt-4o-mini", input_tokens=4, cached_tokens=400)[0]

    def test_is_that_of_the_package_for_other_models(self, settings: Settings) -> None:
        settings.A2A_PRICES = ""
        cost, currency = cost_of("gpt-4o-mini", input_tokens=1_000_000)
        assert isinstance(cost, Decimal)
        assert cost > 0
        assert currency == "USD"

    def test_is_unknown_for_models_that_nobody_knows(self, settings: Settings) -> None:
        settings.A2A_PRICES = PRICES
        assert cost_of("scripted", input_tokens=7) == (None, "")

    def test_is_unknown_without_the_package(
        self, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.A2A_PRICES = ""
        monkeypatch.setattr(prices, "_import_package", lambda: None)
        assert cost_of("gpt-4o-mini", input_tokens=7) == (None, "")

    def test_that_is_absurd_is_unknown(self, settings: Settings) -> None:
        settings.A2A_PRICES = '{"m": {"input": 1e9}}'
        assert cost_of("m", input_tokens=10**9) == (None, "")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong", ["[]", "{", '{"m": 1}', '{"m": {"in": 1}}', '{"m": {"input": "x"}}', '{"m": {"input": -1}}', '{"m": {"currency": "euro"}}']
)  # fmt: skip
def test_a_wrong_setting_is_told_of_and_stops_no_run(settings: Settings, wrong: str) -> None:
    settings.A2A_PRICES = wrong
    assert [error.id for error in check_settings()] == ["a2a_tasks.E057"]
    assert cost_of("scripted", input_tokens=7) == (None, "")
