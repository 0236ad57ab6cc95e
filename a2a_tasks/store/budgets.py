"""Budgets, the sums that were used of them, and the decisions of operators.

The transaction that writes a report of usage also adds to the sums (`add_charges`), so that every process sees them
before the next call of a model. The budgets themselves are cached in each process (`access/switch_cache.py`).
"""

from __future__ import annotations

import datetime
import functools
import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.forms.models import model_to_dict
from django.utils import timezone

from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.models import (
    IS_PARKED,
    Budget,
    BudgetAction,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
    Run,
    Task,
)
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit
from a2a_tasks.store.batched_call import BatchedCall
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.records import Spender

__all__ = [
    "Amounts",
    "Charge",
    "SpentBudget",
    "add_charges",
    "allow",
    "charge_batched",
    "begin_wait",
    "find_spent",
    "is_any_in_force",
    "is_spent",
    "is_time_limited",
    "forget_old",
    "list_charges",
    "list_asking",
    "list_in_force",
    "put",
    "read_budgets",
    "refuse",
    "save",
    "tell",
    "write_amount",
]

#: Sums are kept for this time after their last change, for operators.
KEPT = datetime.timedelta(days=90)
#: The beginning of a window that never ends.
BEGINNING = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
DECEMBER = 12
_known: Sequence[Budget] = ()


class Amounts(NamedTuple):
    """The amounts of a report, by unit; a cost that is not known is 0."""

    tokens: int = 0
    calls: int = 0
    cost: Decimal = Decimal(0)
    currency: str = ""
    seconds: float = 0.0

    def measure(self, budget: Budget) -> Decimal:
        """Return the amount that a budget counts; costs in another currency are 0."""
        if budget.unit == BudgetUnit.COST and budget.currency != self.currency:
            return Decimal(0)
        return Decimal(str(getattr(self, budget.unit)))


class Charge(NamedTuple):
    """An amount to add to one sum of a budget."""

    budget: int
    subject: str
    since: datetime.datetime
    amount: Decimal


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A budget that has nothing left for a spender."""

    budget: Budget
    #: The sum, which may not be stored yet.
    use: BudgetUse
    #: The end of its window; None = it never ends.
    until: datetime.datetime | None

    @property
    def refuses(self) -> bool:
        """True if work is refused: by the budget, or by an operator who was asked."""
        return self.budget.action == BudgetAction.REFUSE or self.use.refused

    @property
    def asks(self) -> bool:
        """True if operators have to be asked, and are not asked yet."""
        return self.budget.action == BudgetAction.ASK and self.use.asked_at is None

    @property
    def seconds_left(self) -> float:
        """The seconds until its window ends; 0 = it never ends."""
        return max(1.0, (self.until - timezone.now()).total_seconds()) if self.until else 0.0


def put(found: Sequence[Budget]) -> None:
    """Replace the budgets that this process knows."""
    global _known  # noqa: PLW0603 - one per process
    _known = found


def read_budgets() -> list[Budget]:
    """Return the enabled budgets from the database."""
    return list(Budget.objects.filter(enabled=True).order_by("pk"))


def list_in_force(spender: Spender) -> list[Budget]:
    """Return the budgets that this process knows and that count the work of the spender."""
    return [
        budget
        for budget in _known
        if budget.agent in {"", spender.agent}
        and budget.tenant in {"", spender.tenant}
        and budget.caller in {"", spender.caller}
    ]


def is_time_limited(spender: Spender) -> bool:
    """Return whether a budget in force limits the time of the spender's work."""
    return any(budget.unit == BudgetUnit.SECONDS for budget in list_in_force(spender))


def is_any_in_force() -> bool:
    """Return whether this process knows a budget."""
    return bool(_known)


def find_window(
    budget: Budget, at: datetime.datetime
) -> tuple[datetime.datetime, datetime.datetime | None]:
    """Return the beginning and the end of the window of a time, in UTC; the end is None if it never ends."""
    at = at.astimezone(datetime.UTC)
    hour = at.replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    match budget.window:
        case BudgetWindow.HOUR:
            return hour, hour + datetime.timedelta(hours=1)
        case BudgetWindow.DAY:
            return day, day + datetime.timedelta(days=1)
        case BudgetWindow.MONTH:
            first, year, month = day.replace(day=1), day.year, day.month
            after = (year + 1, 1) if month == DECEMBER else (year, month + 1)
            return first, first.replace(year=after[0], month=after[1])
        case _:
            return BEGINNING, None


def find_subject(budget: Budget, spender: Spender) -> str | None:
    """Return the subject whose sum counts the spender's work; None for a task that does not exist yet."""
    match budget.share:
        case BudgetShare.TENANT:
            return spender.tenant
        case BudgetShare.CALLER:
            return spender.caller
        case BudgetShare.AGENT:
            return spender.agent
        case BudgetShare.TASK:
            return None if spender.task is None else str(spender.task)
        case _:
            return ""


def list_charges(spender: Spender, amounts: Amounts, at: datetime.datetime) -> list[Charge]:
    """Return the amounts to add to the sums of the budgets in force."""
    charges = []
    for budget in list_in_force(spender):
        subject, amount = find_subject(budget, spender), amounts.measure(budget)
        if subject is not None and amount:
            charges.append(Charge(budget.pk, subject, find_window(budget, at)[0], amount))
    return charges


def add_charges(charges: Iterable[Charge]) -> None:
    """Add to the sums, in the open transaction. A budget that was deleted meanwhile counts nothing."""
    sums: dict[tuple[int, str, datetime.datetime], Decimal] = defaultdict(Decimal)
    for budget, subject, since, amount in charges:
        sums[budget, subject, since] += amount
    for key, amount in sorted(sums.items()):  # in order, so that two transactions do not deadlock
        _add(*key, amount)


def _add(budget: int, subject: str, since: datetime.datetime, amount: Decimal) -> None:
    row = BudgetUse.objects.filter(budget_id=budget, subject=subject, since=since)
    more = {"used": F("used") + amount, "changed_at": Now()}
    if row.update(**more) or not Budget.objects.filter(pk=budget).exists():
        return
    try:
        with transaction.atomic():
            BudgetUse.objects.create(budget_id=budget, subject=subject, since=since, used=amount)
    except IntegrityError:  # another transaction has written it, or the budget is gone
        row.update(**more)


def is_spent(use: int) -> bool:
    """Return whether nothing is left of a sum and operators have not refused more; lock it in the open transaction.

    The budget is locked, too, so that later changes of it find the run parked. A sum of another window is not spent.
    """
    row = BudgetUse.objects.select_for_update().select_related("budget").filter(pk=use).first()
    if row is None or row.refused or not row.budget.enabled:
        return False
    if row.since != find_window(row.budget, timezone.now())[0]:
        return False
    return row.used >= row.budget.limit + row.allowed


@transaction.atomic
def charge_many(works: Sequence[tuple[Spender, Amounts]]) -> list[Exception | None]:
    """Add the work of several runs to the sums of the budgets in force."""
    now = timezone.now()
    add_charges(charge for work in works for charge in list_charges(*work, now))
    return [None for _ in works]


#: `await charge_batched((spender, amounts))`: add to the sums, in one flush with other runs of this process.
charge_batched: BatchedCall[tuple[Spender, Amounts], None] = BatchedCall(
    charge_many, run=run_to_completion
)


def find_spent(spender: Spender, at: datetime.datetime | None = None) -> list[SpentBudget]:
    """Return the budgets in force that have nothing left for the spender, with one query, or none if no budget is in force."""
    at = at or timezone.now()
    sums = {
        (budget.pk, subject): (budget, *find_window(budget, at))
        for budget in list_in_force(spender)
        if (subject := find_subject(budget, spender)) is not None
    }
    if not sums:
        return []
    wanted = Q()
    for (key, subject), (_, since, _end) in sums.items():
        wanted |= Q(budget=key, subject=subject, since=since)
    stored = {(use.budget_id, use.subject): use for use in BudgetUse.objects.filter(wanted)}
    spent = []
    for (key, subject), (budget, since, until) in sums.items():
        use = stored.get((key, subject)) or BudgetUse(
            budget_id=key, subject=subject, since=since, used=Decimal(0)
        )
        if use.used >= budget.limit + use.allowed:
            spent.append(SpentBudget(budget, use, until))
    return spent


def tell(spent: SpentBudget) -> str:
    """Return why work is refused, for its client. It names no amounts: the sum may be that of others."""
    return f"Nothing is left of the budget {spent.budget.name!r}."


def write_amount(amount: Decimal, budget: Budget) -> str:
    """Return an amount with its unit."""
    if budget.unit == BudgetUnit.COST:
        return f"{amount:,.2f} {budget.currency}"
    return f"{amount.normalize():,f} {budget.get_unit_display()}"


# --- decisions of operators ------------------------------------------------------------------


@transaction.atomic
def begin_wait(spent: SpentBudget, task: int) -> int | None:
    """Return the key of the sum for which the run will wait, and ask operators if the budget asks.

    None: the budget was deleted, or was changed after this process had read it.
    """
    stored = Budget.objects.filter(pk=spent.budget.pk).first()
    if stored is None or model_to_dict(stored) != model_to_dict(spent.budget):
        return None
    use, _ = BudgetUse.objects.select_for_update().get_or_create(
        budget_id=spent.budget.pk, subject=spent.use.subject, since=spent.use.since
    )
    asks = spent.budget.action == BudgetAction.ASK and not use.refused
    if asks and use.asked_at is None:
        BudgetUse.objects.filter(pk=use.pk).update(asked_at=Now(), asked_for=task)
    return use.pk


def list_asking() -> QuerySet[BudgetUse]:
    """Return the sums about which operators are asked, oldest first (index `budget_asks`).

    They are not asked any more if the window has ended, the budget has room again, or the only task of the sum has ended.
    """
    now = timezone.now()
    windows = [(window, find_window(Budget(window=window), now)[0]) for window in BudgetWindow]
    current = functools.reduce(
        operator.or_, (Q(budget__window=window, since=since) for window, since in windows)
    )
    going = Task.objects.filter(pk=OuterRef("asked_for")).exclude(state__in=TERMINAL)
    asking = BudgetUse.objects.filter(
        current,
        ~Q(budget__share=BudgetShare.TASK) | Exists(going),
        asked_at__isnull=False,
        used__gte=F("budget__limit") + F("allowed"),
        budget__enabled=True,
        budget__action=BudgetAction.ASK,
    )
    return asking.select_related("budget").order_by("asked_at", "pk")


def allow(use: int, amount: Decimal, reason: str = "") -> bool:
    """Allow more than the limit to the subject of a sum, in its window, and wake the runs that wait for it.

    False if the sum does not exist any more. Raises ValueError for an amount that is not positive.
    """
    if not 0 < amount < 10**14:
        raise ValueError("More must be a positive number")
    return _decide(use, Action.BUDGET_ALLOW, reason, amount=amount, refused=False)


def refuse(use: int, reason: str = "") -> bool:
    """Allow no more to the subject of a sum in its window: the runs that wait for it fail."""
    return _decide(use, Action.BUDGET_REFUSE, reason, amount=Decimal(0), refused=True)


def _decide(use: int, action: Action, reason: str, *, amount: Decimal, refused: bool) -> bool:
    with transaction.atomic():
        row = BudgetUse.objects.select_for_update().filter(pk=use).first()
        if row is None:
            return False
        BudgetUse.objects.filter(pk=use).update(
            allowed=F("allowed") + amount, refused=refused, asked_at=None, changed_at=Now()
        )
        detail: dict[str, Any] = {"subject": row.subject, "amount": str(amount)}
        audit.note(action, row.budget.name, detail=detail | ({"reason": reason} if reason else {}))
        wake_runs(Q(waits_for_budget=use))
    return True


def wake_runs(which: Q) -> None:
    """Wake parked runs that wait for sums of budgets: they read the sums again."""
    Run.objects.filter(IS_PARKED, which).update(due_at=Now())


def save(budget: Budget) -> None:
    """Write a new or changed budget, with an entry of the audit log. The runs that wait for it read it again."""
    with transaction.atomic():
        made = budget.pk is None
        budget.save()
        names = ("unit", "currency", "share", "window", "action", "enabled")
        detail = {name: getattr(budget, name) for name in names} | {"limit": str(budget.limit)}
        action = Action.BUDGET_CREATE if made else Action.BUDGET_CHANGE
        audit.note(action, budget.name, detail=detail)
        _wake_all(budget.pk)
    pubsub.publish(pubsub.OverridesChanged())


def delete(budget: Budget) -> None:
    """Delete a budget and its sums, with an entry of the audit log. The runs that wait for it go on."""
    with transaction.atomic():
        _wake_all(budget.pk)
        audit.note(Action.BUDGET_DELETE, budget.name)
        budget.delete()
    pubsub.publish(pubsub.OverridesChanged())


def _wake_all(budget: int) -> None:
    wake_runs(Q(waits_for_budget__in=BudgetUse.objects.filter(budget=budget).values("pk")))


def forget_old(max_count: int) -> int:
    """Delete sums of windows that ended long ago, and sums of tasks that have not changed for as long; return their number."""
    old = BudgetUse.objects.filter(changed_at__lt=timezone.now() - KEPT)
    ended = old.filter(~Q(budget__window=BudgetWindow.EVER) | Q(budget__share=BudgetShare.TASK))
    ended = ended.exclude(pk__in=list_asking().order_by().values("pk"))
    keys = list(ended.values_list("pk", flat=True)[:max_count])
    return BudgetUse.objects.filter(pk__in=keys).delete()[0]
