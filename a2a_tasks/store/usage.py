"""The usage ledger: it stores reports of agents, and sums them.

Rows are not fenced: a run that has lost its task has called the model nevertheless.
"""

from __future__ import annotations

import datetime
import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from decimal import Decimal

from django.db import transaction
from django.db.models import Max, Min, Q, Sum
from django.utils import timezone

from a2a_tasks.agents.faults import BudgetSpent
from a2a_tasks.agents.usage import OTHERS, ModelUsage
from a2a_tasks.caller import OwnerScope
from a2a_tasks.failpoints import failpoint
from a2a_tasks.models import Task, Usage
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.budgets import (
    Amounts,
    add_charges,
    find_spent,
    is_any_in_force,
    list_charges,
    tell,
)
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.prices import find_cost
from a2a_tasks.store.records import UsageEntry
from a2a_tasks.store.scoping import visible_to

__all__ = ["purge_usage", "read_usage", "sum_by_task", "write_batched", "write_many"]

#: Names of models in the sums of one task; further ones are summed as OTHERS.
MAX_MODELS = 50
FIGURES = ("requests", "input_tokens", "output_tokens", "cached_tokens")


def write_many(calls: Sequence[Sequence[UsageEntry]]) -> list[Exception | None]:
    """Write the reports of several runs. A report that is written already is not written again.

    The result for each run is None, or BudgetSpent if a budget refuses more work; its reports are written in both cases.
    """
    _write(calls)
    failpoint("worker.reported")
    return [_find_refusal(call) for call in calls]


@transaction.atomic
def _write(calls: Sequence[Sequence[UsageEntry]]) -> None:
    entries = [entry for call in calls for entry in call]
    # A first try whose outcome is unknown has ended, since its connection was closed.
    known = Usage.objects.filter(report__in=[entry.report.id for entry in entries])
    stored = set(known.values_list("report", flat=True)) if is_any_in_force() else set[uuid.UUID]()
    alive = Task.objects.filter(pk__in={entry.run.task for entry in entries})
    keys = set(alive.values_list("pk", flat=True))
    rows = [_make_row(entry, is_known=entry.run.task in keys) for entry in entries]
    Usage.objects.bulk_create(rows, ignore_conflicts=True)
    now = timezone.now()
    add_charges(
        charge
        for entry, row in zip(entries, rows, strict=True)
        if row.report not in stored
        for charge in list_charges(entry.spender, _find_amounts(row), now)
    )


def _find_amounts(row: Usage) -> Amounts:
    tokens = row.input_tokens + row.output_tokens
    cost = row.cost or Decimal(0)
    return Amounts(tokens=tokens, calls=row.requests, cost=cost, currency=row.currency)


def _find_refusal(call: Sequence[UsageEntry]) -> BudgetSpent | None:
    """Return the refusal, if a budget refuses more work of the run."""
    refusals = [spent for spent in find_spent(call[0].spender) if spent.refuses] if call else []
    return BudgetSpent(tell(refusals[0])) if refusals else None


def _make_row(entry: UsageEntry, *, is_known: bool) -> Usage:
    """Return the row of a report. If its task was removed, perhaps with all data of a person, the row has no ids and names."""
    run, spent = entry.run, entry.report
    cost, currency = find_cost(spent)
    row = Usage(
        report=spent.id,
        task=run.task,
        tenant=run.scope.tenant,
        agent=run.scope.agent,
        run=run.run,
        attempt=run.attempt,
        step=spent.step,
        model=spent.model,
        requests=spent.requests,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_tokens=spent.cached_tokens,
        cost=cost,
        currency=currency if cost is not None else "",
    )
    if is_known:
        row.task_id, row.context_id = run.task_id, run.context_id
        row.owner, row.caller = run.scope.owner, entry.spender.caller
    return row


#: `await write_batched([UsageEntry(...), ...])`: write reports of a run, in one flush with those of other runs.
write_batched: BatchedCall[Sequence[UsageEntry], None] = BatchedCall(
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
    """Return the sums by model of these tasks in the scope, by id; tasks without any are left out."""
    tasks = Task.objects.filter(visible_to(scope), public_id__in=public_ids)
    names = dict(tasks.values_list("pk", "public_id"))
    return {names[key]: found for key, found in sum_by_task(names).items()}


def purge_usage(limit: datetime.datetime, max_count: int) -> int:
    """Remove reports from before a time, oldest first, at most `max_count`. Returns their number."""
    old = Usage.objects.filter(at__lt=limit).order_by("at").values_list("pk", flat=True)
    gone, _ = Usage.objects.filter(pk__in=list(old[:max_count])).delete()
    return gone
