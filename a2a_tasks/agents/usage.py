"""Reports of what models were used for: tokens, requests and cost, as the agent or its framework counts them."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import uuid
from collections.abc import Iterator
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import msgspec

from a2a_tasks.protocol.soundness import mend

__all__ = ["OTHERS", "ModelUsage", "UsageReport", "begin_step", "make_report", "unwrap"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
#: The largest count of one report, and the largest cost. They are beyond what any model does in one call, and sums of
#: them stay exact.
MOST, MOST_COST = 10**12, 10**9
MAX_NAME_LENGTH = 200
#: The currency of costs, unless the agent names another one.
CURRENCY = "USD"
is_currency = re.compile("[A-Z]{3}").fullmatch
#: The name for models that have none of their own in a sum.
OTHERS = "others"
#: Marks the stored result of a step with usage, as earlier versions of the host stored it.
MARK = "urn:a2a-host:usage"


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of one or several requests to a model."""

    #: Identifies the report, so that a repeated write counts once.
    id: uuid.UUID
    #: The step in which it was made; empty = in none.
    step: str
    model: str
    requests: int = 1
    input_tokens: int = 0
    output_tokens: int = 0
    #: Those of the input tokens that the model had in its cache, and those that it has written to it.
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    #: None = unknown.
    cost: Decimal | None = None
    #: The currency of the cost: three capital letters (ISO 4217).
    currency: str = CURRENCY


class ModelUsage(msgspec.Struct, rename="camel", omit_defaults=True):
    """The sums of one model's reports. `cost` is that of the reports with a known one; None = there are none.

    Costs in several currencies have no sum: then `cost` is None, too.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None
    currency: str = ""


_step: ContextVar[str] = ContextVar("a2a_step", default="")


@contextlib.contextmanager
def begin_step(name: str) -> Iterator[None]:
    """Let the reports in this block be those of the step of that name."""
    token = _step.set(name)
    try:
        yield
    finally:
        _step.reset(token)


def make_report(model: Any, cost: Any, currency: Any, **counts: Any) -> UsageReport | None:
    """Return the report of these figures; None if they cannot be true, and then the log of the run says why."""
    model = mend(model)
    faults = [f"{name}={value!r}" for name, value in counts.items() if not _is_count(value)]
    if not _is_cost(cost):
        faults.append(f"cost={cost!r}")
    if not (isinstance(currency, str) and is_currency(currency)):
        faults.append(f"currency={currency!r}")
    if not (isinstance(model, str) and 0 < len(model) <= MAX_NAME_LENGTH and model.isprintable()):
        faults.append(f"model={str(model)[:MAX_NAME_LENGTH]!r}")
    if faults:
        logger.warning("turn.usage: not counted, because of %s", ", ".join(faults)[:1000])
        return None
    cached = counts.get("cached_tokens", 0) + counts.get("cache_write_tokens", 0)
    if cached > counts.get("input_tokens", 0):
        logger.warning(
            "turn.usage: %d tokens of a cache are more than the %d input tokens, which should include them",
            cached,
            counts.get("input_tokens", 0),
        )
    exact = None if cost is None else Decimal(str(cost))
    return UsageReport(
        id=uuid.uuid4(), step=_step.get(), model=model, cost=exact, currency=currency, **counts
    )


def unwrap(kept: str) -> Any:
    """Return the result in the stored JSON of a step.

    Earlier versions stored a step's usage with its result. Their sums are not counted again, only left out.
    """
    result = msgspec.json.decode(kept)
    if isinstance(result, dict) and MARK in result:
        return result["result"]
    return result


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_cost(value: Any) -> bool:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return value is None or (number and math.isfinite(value) and 0 <= value <= MOST_COST)
