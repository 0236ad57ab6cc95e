"""The usage ledger: it stores reports of agents, and sums them.

Rows are not fenced: a run that has lost its task has called the model nevertheless.
"""

from __future__ import annotations

import datetime
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Max, Min, OuterRef, Q, Subquery, Sum

from a2a_tasks.agents.usage import OTHERS, ModelUsage
from a2a_tasks.caller import OwnerScope
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Delegation, Task, Usage
from a2a_tasks.store import clock
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.budgets import (
    Amounts,
    SpentBudget,
    add_charges,
    find_many_spent,
    is_any_in_force,
    list_charges,
)
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.prices import find_cost
from a2a_tasks.store.records import Spender, UsageEntry
from a2a_tasks.store.scoping import visible_to

__all__ = ["purge_usage", "read_usage", "sum_by_task", "write_batched", "write_many"]

#: Names of models in the sums of one task; further ones are summed as OTHERS.
MAX_MODELS = 50
FIGURES = ("requests", "input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")


def write_many(calls: Sequence[Sequence[UsageEntry]]) -> list[list[SpentBudget] | Exception]:
    """Write the reports of several runs. A report that is written already is not written again, and charges nothing.

    The result for each run is the budgets that have nothing left for it.
    """
    entries = {entry.report.id: entry for call in calls for entry in call}
    _write(entries)
    failpoint("worker.reported")
    return [*find_many_spent([call[0].spender for call in calls])]


@transaction.atomic
def _write(entries: Mapping[uuid.UUID, UsageEntry]) -> None:
    new = dict(entries)
    while new:
        try:
            _insert(list(new.values()))
        except IntegrityError:
            # A first try with an unknown outcome was committed: the insert has waited for it, so it is visible now.
            known = Usage.objects.filter(report__in=new)
            stored = set(known.values_list("report", flat=True))
            if not stored:
                raise
            new = {key: entry for key, entry in new.items() if key not in stored}
        else:
            break


@transaction.atomic
def _insert(entries: Sequence[UsageEntry]) -> None:
    """Write reports and add to the sums. Raises IntegrityError, and does neither, if one of them is written already."""
    alive = Task.objects.filter(pk__in={entry.run.task for entry in entries})
    keys = set(alive.values_list("pk", flat=True))
    rows = [_make_row(entry, is_known=entry.run.task in keys) for entry in entries]
    Usage.objects.bulk_create(rows)
    if is_any_in_force():
        now = clock.now()
        add_charges(
            charge
            for entry, row in zip(entries, rows, strict=True)
            for charge in list_charges(_find_spender(entry, keys), _find_amounts(row), now)
        )


def _find_spender(entry: UsageEntry, known: Collection[int]) -> Spender:
    return entry.spender if entry.run.task in known else entry.spender.forget_caller()


def _find_amounts(row: Usage) -> Amounts:
    tokens = row.input_tokens + row.output_tokens
    cost = row.cost or Decimal(0)
    return Amounts(tokens=tokens, calls=row.requests, cost=cost, currency=row.currency)


def _make_row(entry: UsageEntry, *, is_known: bool) -> Usage:
    """Return the row of a report. If its task was removed, perhaps with all data of a person, the row has no ids and names."""
    run, spent = entry.run, entry.report
    cost, currency = find_cost(spent)
    row = Usage(
        report=spent.id,
        task=run.task,
        tenant=run.scope.tenant,
        agent=run.scope.agent,
        run=run.key,
        attempt=run.attempt,
        step=spent.step,
        model=spent.model,
        requests=spent.requests,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_tokens=spent.cached_tokens,
        cache_write_tokens=spent.cache_write_tokens,
        cost=cost,
        currency=currency if cost is not None else "",
    )
    if is_known:
        row.task_id, row.context_id = run.task_id, run.context_id
        row.owner, row.caller = run.scope.owner, entry.spender.caller or ""
    return row


#: `await write_batched([UsageEntry(...), ...])`: write reports of a run, in one flush with those of other runs.
write_batched: BatchedCall[Sequence[UsageEntry], list[SpentBudget]] = BatchedCall(
    write_many, run=run_to_completion, again=needs_no_mark
)


def sum_by_task(keys: Collection[int]) -> dict[int, dict[str, ModelUsage]]:
    """Return the sums by model of these tasks, by primary key; tasks without any are left out."""
    priced = Q(cost__isnull=False)
    rows = (
        Usage.objects.filter(task__in=keys)
        .values("task", "model")
        .annotate(
            *map(Sum, FIGURES),
            Sum("cost"),
            least=Min("currency", filter=priced),
            most=Max("currency", filter=priced),
        )
        .order_by("task", "model")
        .values_list(
            "task",
            "model",
            *(f"{name}__sum" for name in FIGURES),
            "cost__sum",
            "least",
            "most",
        )
    )
    found: defaultdict[int, dict[str, ModelUsage]] = defaultdict(dict)
    for task, model, *figures, cost, currency, other in rows:
        models = found[task]
        if len(models) >= MAX_MODELS:
            model, cost = OTHERS, None
        total = models.setdefault(model, ModelUsage())
        for name, figure in zip(FIGURES, figures, strict=True):
            setattr(total, name, getattr(total, name) + figure)
        if cost is not None and currency == other:
            total.cost, total.currency = float(cost), currency
    return dict(found)


def read_usage(scope: OwnerScope, public_ids: Collection[str]) -> dict[str, dict[str, ModelUsage]]:
    """Return the sums by model of these tasks in the scope, by id; tasks without any are left out.

    The first task of a tree also has the sums of the agents that were called from it, by their slugs.
    """
    tasks = Task.objects.filter(visible_to(scope), public_id__in=public_ids)
    names = dict(tasks.values_list("pk", "public_id"))
    own, called = sum_by_task(names), sum_by_agent(names)
    found = {key: {**called.get(key, {}), **own.get(key, {})} for key in {*own, *called}}
    return {names[key]: sums for key, sums in found.items()}


def sum_by_agent(roots: Collection[int]) -> dict[int, dict[str, ModelUsage]]:
    """Return the sums of the agents that were called from these tasks, directly or not, by their slugs."""
    priced = Q(cost__isnull=False)
    children = Delegation.objects.filter(root__in=roots)
    called = children.filter(child=OuterRef("task"))
    rows = (
        Usage.objects.filter(task__in=children.values("child"))
        .annotate(
            root=Subquery(called.values("root")), called=Subquery(called.values("child__agent"))
        )
        .values("root", "called")
        .annotate(
            *map(Sum, FIGURES),
            Sum("cost"),
            least=Min("currency", filter=priced),
            most=Max("currency", filter=priced),
        )
        .values_list(
            "root",
            "called",
            *(f"{name}__sum" for name in FIGURES),
            "cost__sum",
            "least",
            "most",
        )
    )
    found: defaultdict[int, dict[str, ModelUsage]] = defaultdict(dict)
    for root, agent, *figures, cost, currency, other in rows:
        total = found[root][agent] = ModelUsage(**dict(zip(FIGURES, figures, strict=True)))
        if cost is not None and currency == other:  # costs in several currencies have no sum
            total.cost, total.currency = float(cost), currency
    return dict(found)


def purge_usage(limit: datetime.datetime, max_count: int) -> int:
    """Remove reports from before a time, oldest first, at most `max_count`. Returns their number."""
    old = Usage.objects.filter(at__lt=limit).order_by("at").values_list("pk", flat=True)
    gone, _ = Usage.objects.filter(pk__in=list(old[:max_count])).delete()
    return gone
