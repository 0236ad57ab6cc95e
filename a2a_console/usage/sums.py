"""Sums of the usage ledger over a span of time: by task, tree of tasks, conversation, caller, tenant, agent, model or day.

The queries have a time limit, and the number of lines is bounded. Costs are exact decimals, and are never added across currencies.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, TruncDate

from a2a_console.statistics.counts import Narrow, limit_reads
from a2a_tasks.models import Delegation, Task, Usage

__all__ = [
    "FIGURES",
    "GROUPS",
    "MAX_LINES",
    "SPAN",
    "UsageFilter",
    "UsageLine",
    "UsageSums",
    "sum_usage",
]

#: Maximum number of lines.
MAX_LINES = 10_000
#: The default span of time.
SPAN = datetime.timedelta(days=30)
FIGURES = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
#: The columns that tell the lines apart, by the name of the group.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "day": ("day",),
    "agent": ("agent",),
    "model": ("model",),
    "tenant": ("tenant",),
    "caller": ("caller", "tenant"),
    "conversation": ("context_id", "agent", "owner", "tenant"),
    "task": ("task_id", "agent", "owner", "tenant", "task"),
    #: A task with those that it has called, directly or not.
    "tree": ("task_id", "agent", "owner", "tenant", "task"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageFilter:
    """The reports that are summed: those from `since` to before `until`, with these values of columns."""

    since: datetime.datetime
    until: datetime.datetime
    #: Columns and their values.
    equal: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The sums of the reports of one group with costs in one currency, or with unknown costs."""

    #: The values of the columns of the group, in their order.
    key: Mapping[str, Any]
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    #: None = unknown.
    cost: Decimal | None
    #: Empty = the cost is unknown.
    currency: str

    @property
    def exact_cost(self) -> str | None:
        """The exact cost without an exponent and needless zeros; None = unknown."""
        text = f"{self.cost:f}" if self.cost is not None else None
        return text.rstrip("0").rstrip(".") if text and "." in text else text


@dataclass(frozen=True, slots=True)
class UsageSums:
    """The lines, and the sums of all reports. Days are in order; other groups begin with the most tokens."""

    lines: Sequence[UsageLine]
    #: One line for each currency.
    totals: Sequence[UsageLine]
    #: True if there are more lines.
    more: bool


def sum_usage(by: str, wanted: UsageFilter, narrow: Narrow, *, limit: int) -> UsageSums:
    """Return the sums of the reports that `narrow` leaves, in at most `limit` lines. Raises TooMany."""
    rows = narrow(Usage.objects.filter(at__gte=wanted.since, at__lt=wanted.until), "")
    rows = rows.filter(**wanted.equal).order_by().annotate(day=TruncDate("at", tzinfo=datetime.UTC))
    with limit_reads():
        make_lines = _sum_trees if by == "tree" else _sum
        lines = make_lines(rows, GROUPS[by], limit + 1)
        more = len(lines) > limit
        totals = _sum(rows, (), MAX_LINES) if more else _add_up(lines)
    return UsageSums(lines[:limit], totals, more=more)


def _add_up(lines: Sequence[UsageLine]) -> list[UsageLine]:
    """Return the totals of all lines, in the order of the database's: the most tokens first."""
    totals: dict[str, UsageLine] = {}
    for line in lines:
        so_far = totals.get(line.currency, UsageLine({}, 0, 0, 0, 0, 0, None, line.currency))
        figures = {name: getattr(so_far, name) + getattr(line, name) for name in FIGURES}
        cost = None if line.cost is None else line.cost + (so_far.cost or 0)
        totals[line.currency] = replace(
            so_far, **figures, cost=so_far.cost if cost is None else cost
        )
    return sorted(
        totals.values(), key=lambda one: (-one.input_tokens - one.output_tokens, one.currency)
    )


def _sum(rows: QuerySet[Usage], names: tuple[str, ...], limit: int) -> list[UsageLine]:
    size = F("input_tokens__sum") + F("output_tokens__sum")
    order = names if names == ("day",) else (size.desc(), *names)
    groups = rows.values(*names, "currency").annotate(*map(Sum, (*FIGURES, "cost")))
    return [
        UsageLine(
            key={name: row[name] for name in names},
            **{figure: row[f"{figure}__sum"] for figure in (*FIGURES, "cost")},
            currency=row["currency"],
        )
        for row in groups.order_by(*order, "currency")[:limit]
    ]


def _sum_trees(rows: QuerySet[Usage], names: tuple[str, ...], limit: int) -> list[UsageLine]:
    """Return the sums by first task; the names of one that is gone are empty."""
    roots = Delegation.objects.filter(child=OuterRef("task")).values("root")[:1]
    lines = _sum(rows.annotate(root=Coalesce(Subquery(roots), F("task"))), ("root",), limit)
    keys = [line.key["root"] for line in lines]
    columns = ("pk", "public_id", "agent", "owner", "tenant")
    found = {key: about for key, *about in Task.objects.filter(pk__in=keys).values_list(*columns)}
    return [
        replace(line, key=dict(zip(names, [*found.get(key, [""] * 4), key], strict=True)))
        for key, line in zip(keys, lines, strict=True)
    ]
