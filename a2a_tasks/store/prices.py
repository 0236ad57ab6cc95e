"""Costs for reports of usage without a cost: from A2A_PRICES, else from the package genai-prices.

Both are read without any call to another server.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from a2a_tasks.agents.usage import CURRENCY, MOST_COST, UsageReport, is_currency
from a2a_tasks.conf import conf

__all__ = ["Price", "find_cost", "read_prices"]

MILLION = Decimal(1_000_000)


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a model: of a million tokens, and of one request."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    #: The price of a million input tokens that the model had in its cache; None = that of other input tokens.
    cached: Decimal | None = None
    #: That of a million input tokens that were written to the cache; None = that of other input tokens.
    cache_write: Decimal | None = None
    request: Decimal = Decimal(0)
    currency: str = CURRENCY

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cached or 0, self.cache_write or 0, self.request) < 0:
            raise ValueError("a price is negative")
        if not is_currency(self.currency):
            raise ValueError("a currency is three capital letters")


@functools.lru_cache(maxsize=4)
def read_prices(text: str) -> Mapping[str, Price]:
    """Return the prices in the setting by model, a name or a pattern with `*`. Raises ValueError."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Price])
    except msgspec.MsgspecError as fault:
        raise ValueError(str(fault)) from fault


def find_cost(report: UsageReport) -> tuple[Decimal | None, str]:
    """Return the cost of a report and its currency: those of the agent, else from the prices; None = unknown."""
    if report.cost is not None:
        return report.cost, report.currency
    try:
        prices = read_prices(conf.PRICES)
    except ValueError:  # a system check reports it
        prices = {}
    price = prices.get(report.model) or _find_pattern(prices, report.model)
    cost = _compute(price, report) if price else _ask_package(report)
    if cost is None or not 0 <= cost <= MOST_COST:
        return None, ""
    return cost, price.currency if price else CURRENCY


def _find_pattern(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return the price of the longest pattern that matches the name."""
    fitting = [name for name in prices if "*" in name and fnmatchcase(model, name)]
    return prices[max(fitting, key=len)] if fitting else None


def _compute(price: Price, report: UsageReport) -> Decimal:
    cached, written = _find_cached(report)
    tokens = (report.input_tokens - cached - written) * price.input
    tokens += cached * (price.input if price.cached is None else price.cached)
    tokens += written * (price.input if price.cache_write is None else price.cache_write)
    return (
        report.requests * price.request + (tokens + report.output_tokens * price.output) / MILLION
    )


def _find_cached(report: UsageReport) -> tuple[int, int]:
    """Return the input tokens from the cache, and those that were written to it: together no more than the input."""
    cached = min(report.cached_tokens, report.input_tokens)
    return cached, min(report.cache_write_tokens, report.input_tokens - cached)


def _ask_package(report: UsageReport) -> Decimal | None:
    """Return the cost by the package's own table, in US dollars; None if it is not installed or has no such model."""
    package = _import_package()
    if package is None:
        return None
    cached, written = _find_cached(report)
    tokens = package.Usage(
        input_tokens=report.input_tokens,
        output_tokens=report.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
    try:
        found: Decimal = package.calc_price(tokens, report.model).total_price
    except (LookupError, ValueError):
        return None
    return found


@functools.cache
def _import_package() -> Any:
    try:
        import genai_prices  # noqa: PLC0415 - an extra, whose table takes 0.1 s to load
    except ImportError:
        return None
    return genai_prices
