"""The room that is left of budgets: admissions of work, reservations near the limit, and which runs to wake.

Near the limit an admission reserves the mean of a report so far (`BudgetHold`), so that many runs at once do not all
spend what is left. A reservation counts as long as its run has the lease: a report replaces it, and the end, the death
and the park of the run give it back.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import math
import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models import Sum as Total

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
)
from a2a_tasks.store import clock
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.budgets import (
    SpentBudget,
    Sum,
    SumKey,
    ask,
    find_left,
    find_window,
    is_any_in_force,
    list_sums,
    read_uses,
)
from a2a_tasks.store.records import Spender

__all__ = [
    "Admission",
    "admit_batched",
    "count_admissible",
    "is_current",
    "list_roomy",
    "lock_waited",
    "must_wait",
    "note_woken",
    "stop_looking",
]

#: A sum is scarce if it has room for fewer reports: then admissions reserve theirs.
NEAR = 1000
#: Seconds for which a reservation counts, and one for a run that was woken and has not begun: a call that takes longer,
#: and a run that waits for work of others, do not keep these waiting.
HOLD_SECONDS, WOKEN_SECONDS = 300, 60
#: The mean of a report before the first one: a call, a second, or this part of the limit.
UNKNOWN_PART = 20
#: Maximum number of running runs that are counted.
COUNTED = 10_000

Holds = defaultdict[int, dict[int, Decimal]]


class Admission(NamedTuple):
    """The answer to work that asks whether it may begin."""

    #: The budgets for which it has to wait, or that refuse it; empty = it may begin.
    spent: list[SpentBudget]
    #: Seconds for which budgets of seconds surely last, if all runs under way use them; infinite = none counts the work.
    seconds: float = math.inf


def admit_many(spenders: Sequence[Spender]) -> list[Admission | Exception]:
    """Return for each of these runs whether work may begin, with one query for all, and reserve its room where that is scarce."""
    at = clock.now()
    wanted = [list_sums(spender, at) for spender in spenders]
    uses = read_uses(wanted)
    scarce = {one for sums in wanted for one in sums if _is_scarce(uses[one.key], one.budget)}
    if scarce:
        found = _reserve(spenders, wanted, uses, scarce, at)
    else:
        found = [_list_spent(0, sums, uses, {}) for sums in wanted]
    return [
        Admission(spent, seconds)
        for spent, seconds in zip(found, _measure_seconds(wanted, uses), strict=True)
    ]


#: `await admit_batched(spender)`: ask for many runs of this process at once.
admit_batched: BatchedCall[Spender, Admission] = BatchedCall(admit_many, again=needs_no_mark)


def _list_spent(
    run: int,
    sums: Iterable[Sum],
    uses: Mapping[SumKey, BudgetUse],
    holds: Mapping[int, Mapping[int, Decimal]],
) -> list[SpentBudget]:
    found = []
    for one in sums:
        use = uses[one.key]
        left = find_left(use, one.budget)
        others = sum(
            amount for holder, amount in holds.get(use.pk or 0, {}).items() if holder != run
        )
        if left <= others:
            found.append(SpentBudget(one.budget, use, one.until, reserved=left > 0))
    return found


# --- reservations ----------------------------------------------------------------------------


def _is_scarce(use: BudgetUse, budget: Budget) -> bool:
    """Return whether admissions reserve their room. The sum of a task has one run at a time."""
    left = find_left(use, budget)
    return left > 0 and budget.share != BudgetShare.TASK and left < NEAR * _find_mean(use, budget)


def _find_mean(use: BudgetUse, budget: Budget) -> Decimal:
    """Return the mean of a report: of this sum, else of the budget's newest sum with reports, else an estimate."""
    if not use.charges:
        if budget.unit in {BudgetUnit.CALLS, BudgetUnit.SECONDS}:
            return Decimal(1)
        known = BudgetUse.objects.filter(budget=budget.pk, charges__gt=0).order_by("-since")
        newest = known.first()
        if newest is None:
            return budget.limit / UNKNOWN_PART
        use = newest
    return use.used / use.charges


@transaction.atomic
def _reserve(
    spenders: Sequence[Spender],
    wanted: Sequence[Sequence[Sum]],
    uses: dict[SumKey, BudgetUse],
    scarce: Iterable[Sum],
    at: datetime.datetime,
) -> list[list[SpentBudget]]:
    """Admit runs one after the other, and reserve the room of each. The scarce sums are locked."""
    means = {}
    for key, budget in sorted({one.key: one.budget for one in scarce}.items()):
        if (use := _lock(key)) is not None:
            uses[key], means[key] = use, _find_mean(use, budget)
    holds = _read_holds([uses[key].pk for key in means], at)
    found, made = [], dict[tuple[int, int], BudgetHold]()
    for spender, sums in zip(spenders, wanted, strict=True):
        found.append(spent := _list_spent(spender.run, sums, uses, holds))
        for one in sums:
            if not spent and one.key in means:
                held_by, amount = uses[one.key].pk, means[one.key]
                holds[held_by][spender.run] = amount
                names = {"budget": one.budget.pk, "use": held_by, "run": spender.run}
                made[held_by, spender.run] = BudgetHold(
                    **names, token=spender.token, amount=amount, made_at=at
                )
    _keep(made.values())
    return found


def _keep(made: Iterable[BudgetHold]) -> None:
    changes = ["token", "amount", "made_at"]
    BudgetHold.objects.bulk_create(
        made, update_conflicts=True, unique_fields=["use", "run"], update_fields=changes
    )


def _lock(key: SumKey) -> BudgetUse | None:
    """Return a sum, locked in the open transaction; it is stored if it was not. None: its budget was deleted."""
    locked = key.find().select_for_update()
    if (found := locked.first()) is not None:
        return found
    if Budget.objects.select_for_update(no_key=True).filter(pk=key.budget).first() is None:
        return None
    with contextlib.suppress(IntegrityError), transaction.atomic():
        key.make().save()  # unless another transaction has written it
    return locked.first()


def _read_holds(uses: Sequence[int], at: datetime.datetime) -> Holds:
    """Return what is reserved, by sum and run."""
    holds: Holds = defaultdict(dict)
    rows = _list_living(at).filter(use__in=uses).values_list("use", "run", "amount")
    for use, run, amount in rows:
        holds[use][run] = amount
    return holds


def _list_living(at: datetime.datetime) -> QuerySet[BudgetHold]:
    """Return the reservations that count: those of runs with the lease, and of woken runs that have not begun."""
    mine = Run.objects.filter(pk=OuterRef("run"))
    held = mine.filter(status=RunStatus.RUNNING, token=OuterRef("token"))
    begins = mine.filter(status__in=(RunStatus.QUEUED, RunStatus.RUNNING), round__lt=PARKED)
    hold, woken = (
        at - datetime.timedelta(seconds=seconds) for seconds in (HOLD_SECONDS, WOKEN_SECONDS)
    )
    return BudgetHold.objects.filter(
        Q(Exists(held), made_at__gt=hold) | Q(Exists(begins), token="", made_at__gt=woken)
    )


def _measure_seconds(
    wanted: Sequence[Sequence[Sum]], uses: Mapping[SumKey, BudgetUse]
) -> list[float]:
    """Return for how long budgets of seconds last for each of these runs, if all runs of the host use them."""
    timed = [[one for one in sums if one.budget.unit == BudgetUnit.SECONDS] for sums in wanted]
    count = 1
    if any(one.budget.share != BudgetShare.TASK for sums in timed for one in sums):
        running = Run.objects.filter(status=RunStatus.RUNNING).values("pk")
        count = max(1, running[:COUNTED].count())
    return [
        min(
            (
                float(find_left(uses[one.key], one.budget))
                / (1 if one.budget.share == BudgetShare.TASK else count)
                for one in sums
            ),
            default=math.inf,
        )
        for sums in timed
    ]


# --- runs that wait --------------------------------------------------------------------------


def must_wait(use: int, run: int) -> bool:
    """Return whether a run still has to wait for a sum, and lock it in the open transaction, in which the run is parked.

    False if there is room now, if operators have refused more, if the window has ended, or if the budget was changed.
    """
    row = BudgetUse.objects.select_for_update().select_related("budget").filter(pk=use).first()
    at = clock.now()
    if row is None or row.refused or not row.budget.enabled or not is_current(row, at):
        return False
    others = _read_holds([use], at)[use]
    if find_left(row, row.budget) > sum(amount for one, amount in others.items() if one != run):
        return False
    BudgetUse.objects.filter(pk=use).update(waited=True)
    return True


def is_current(use: BudgetUse, at: datetime.datetime) -> bool:
    """Return whether the window of a sum lasts at this time."""
    return use.since == find_window(use.budget, at)[0]


def list_roomy() -> list[int]:
    """Return the keys of the sums with parked runs for which something can be done now (index `budget_waited`)."""
    if not is_any_in_force():
        return []
    at = clock.now()
    windows = [(window, find_window(Budget(window=window), at)[0]) for window in BudgetWindow]
    lasts = functools.reduce(
        operator.or_, (Q(budget__window=window, since=since) for window, since in windows)
    )
    changed = Q(refused=True) | Q(budget__enabled=False) | ~lasts
    roomy = Q(used__lt=F("budget__limit") + F("allowed"))
    unasked = Q(asked_at=None, budget__action=BudgetAction.ASK)
    refusing = Q(budget__action=BudgetAction.REFUSE)
    rows = BudgetUse.objects.filter(changed | roomy | unasked | refusing, waited=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def lock_waited(key: int) -> BudgetUse | None:
    """Lock a sum in the open transaction, so that no run is parked for it; None = another transaction has locked it."""
    rows = BudgetUse.objects.select_for_update(of=("self",), skip_locked=True)
    return rows.select_related("budget").filter(pk=key).first()


def count_admissible(waited: BudgetUse, task: int) -> int | None:
    """Return how many runs to wake that wait for a locked sum; None = all, since none of them has to wait.

    Operators are asked for a task if nothing is left.
    """
    use, budget, at = waited, waited.budget, clock.now()
    if not is_current(use, at):  # the work counts for the sum of the new window
        use = _lock(SumKey(budget.pk, use.subject, find_window(budget, at)[0])) or use
    left, mean = find_left(use, budget), _find_mean(use, budget)
    if use.refused or not budget.enabled:
        return None
    if left <= 0 and budget.action == BudgetAction.REFUSE:  # they have waited for reports of others
        return None
    if left <= 0:
        ask(use, budget, task)
        return 0
    if not _is_scarce(use, budget):
        return None
    living = _list_living(at).filter(use__in=(waited.pk, use.pk))
    reserved = living.aggregate(all=Total("amount"))["all"] or Decimal(0)
    return max(0, math.ceil((left - reserved) / mean)) if mean else None


def note_woken(use: BudgetUse, runs: Iterable[int]) -> None:
    """Reserve the mean of a report for each of these runs, which were woken, until they begin."""
    mean = _find_mean(use, use.budget)
    names = {"budget": use.budget_id, "use": use.pk, "amount": mean, "made_at": clock.now()}
    _keep([BudgetHold(run=run, **names) for run in runs])


def stop_looking(use: BudgetUse) -> None:
    """Look no more for runs that wait for a locked sum: there are none."""
    BudgetUse.objects.filter(pk=use.pk).update(waited=False)
