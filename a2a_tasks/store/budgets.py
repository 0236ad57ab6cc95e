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

from a2a_tasks import pubsub
from a2a_tasks.audit import Action
from a2a_tasks.models import (
    IS_PARKED,
    Budget,
    BudgetAction,
    BudgetHold,
    BudgetShare,
    BudgetUnit,
    BudgetUse,
    BudgetWindow,
    Run,
    Task,
)
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.store import audit, clock
from a2a_tasks.store.batched_call import BatchedCall
from a2a_tasks.store.db import run_to_completion
from a2a_tasks.store.records import Spender

__all__ = [
    "Amounts",
    "Charge",
    "SpentBudget",
    "Sum",
    "SumKey",
    "add_charges",
    "allow",
    "ask",
    "begin_wait",
    "charge_batched",
    "find_left",
    "find_many_spent",
    "find_spent",
    "find_window",
    "forget_old",
    "is_any_in_force",
    "is_time_limited",
    "list_asking",
    "list_charges",
    "list_in_force",
    "list_sums",
    "put",
    "read_budgets",
    "read_uses",
    "refuse",
    "save",
    "tell",
    "write_amount",
]

#: Sums are kept for this time after their last change, for operators.
KEPT = datetime.timedelta(days=90)
#: Reservations are deleted after this time. They count nothing for long.
FORGOTTEN = datetime.timedelta(days=1)
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


class SumKey(NamedTuple):
    """The columns that name a sum: it may not be stored yet."""

    budget: int
    subject: str
    since: datetime.datetime

    def find(self) -> QuerySet[BudgetUse]:
        """Return the query for the stored sum."""
        return BudgetUse.objects.filter(**self.columns)

    def make(self, **more: Any) -> BudgetUse:
        """Return a new sum, which is not stored."""
        return BudgetUse(**self.columns, **more)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        return {"budget_id": self.budget, "subject": self.subject, "since": self.since}


class Sum(NamedTuple):
    """The sum of a budget that counts a spender's work, and the end of its window; None = it never ends."""

    budget: Budget
    key: SumKey
    until: datetime.datetime | None


class Charge(NamedTuple):
    """An amount to add to one sum of a budget, and the token of the lease whose reservation it replaces (empty: it replaces none)."""

    key: SumKey
    amount: Decimal
    token: str = ""


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A budget that has nothing left for a spender now."""

    budget: Budget
    #: The sum, which may not be stored yet.
    use: BudgetUse
    #: The end of its window; None = it never ends.
    until: datetime.datetime | None
    #: True if something is left, and is reserved for calls of other runs: work only waits for their reports.
    reserved: bool = False

    @property
    def refuses(self) -> bool:
        """True if work is refused: by the budget, or by an operator who was asked."""
        is_final = self.budget.action == BudgetAction.REFUSE or self.use.refused
        return is_final and not self.reserved

    @property
    def asks(self) -> bool:
        """True if operators have to be asked, and are not asked yet."""
        asks = self.budget.action == BudgetAction.ASK and self.use.asked_at is None
        return asks and not self.reserved

    @property
    def seconds_left(self) -> float:
        """The seconds until its window ends; 0 = it never ends."""
        return max(1.0, self.until.timestamp() - clock.estimate()) if self.until else 0.0


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
    """Return the subject whose sum counts the spender's work; None for a task that does not exist yet, or no more."""
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
    return [
        Charge(one.key, amount, spender.token)
        for one in list_sums(spender, at)
        if (amount := amounts.measure(one.budget))
    ]


def add_charges(charges: Iterable[Charge]) -> None:
    """Add to the sums, and give back what was reserved for this work, in the open transaction.

    A budget that was deleted meanwhile counts nothing.
    """
    sums: dict[SumKey, list[Decimal]] = defaultdict(list)
    holders = set()
    for key, amount, token in charges:
        sums[key].append(amount)
        holders.add(token)
    for key, amounts in sorted(sums.items()):  # in order, so that two transactions do not deadlock
        _add(key, amounts)
    if holders := holders - {""}:
        budgets = {key.budget for key in sums}
        BudgetHold.objects.filter(token__in=holders, budget__in=budgets).delete()


def _add(key: SumKey, amounts: Sequence[Decimal]) -> None:
    row, amount, count = key.find(), sum(amounts, Decimal(0)), len(amounts)
    more = {"used": F("used") + amount, "charges": F("charges") + count, "changed_at": Now()}
    if row.update(**more) or not Budget.objects.filter(pk=key.budget).exists():
        return
    try:
        with transaction.atomic():
            key.make(used=amount, charges=count).save()
    except IntegrityError:  # another transaction has written it, or the budget is gone
        row.update(**more)


@transaction.atomic
def charge_many(works: Sequence[tuple[Spender, Amounts]]) -> list[Exception | None]:
    """Add the work of several runs to the sums of the budgets in force; tasks that were removed count for no caller."""
    now = clock.now()
    tasks = {spender.task for spender, _ in works if spender.task is not None}
    alive = {None, *Task.objects.filter(pk__in=tasks).values_list("pk", flat=True)}
    known = [(who if who.task in alive else who.forget_caller(), spent) for who, spent in works]
    add_charges(charge for work in known for charge in list_charges(*work, now))
    return [None for _ in works]


#: `await charge_batched((spender, amounts))`: add to the sums, in one flush with other runs of this process.
charge_batched: BatchedCall[tuple[Spender, Amounts], None] = BatchedCall(
    charge_many, run=run_to_completion
)


def find_spent(spender: Spender, at: datetime.datetime | None = None) -> list[SpentBudget]:
    """Return the budgets in force that have nothing left for the spender, with one query, or none if no budget is in force."""
    (found,) = find_many_spent([spender], at)
    return found


def find_many_spent(
    spenders: Sequence[Spender], at: datetime.datetime | None = None
) -> list[list[SpentBudget]]:
    """Return for each spender what `find_spent` returns, with one query for all."""
    if not is_any_in_force():
        return [[] for _ in spenders]
    wanted = [list_sums(spender, at or clock.now()) for spender in spenders]
    uses = read_uses(wanted)
    return [
        [
            SpentBudget(one.budget, uses[one.key], one.until)
            for one in sums
            if find_left(uses[one.key], one.budget) <= 0
        ]
        for sums in wanted
    ]


def list_sums(spender: Spender, at: datetime.datetime) -> list[Sum]:
    """Return the sums of the budgets in force that count the spender's work at a time."""
    found = []
    for budget in list_in_force(spender):
        subject = find_subject(budget, spender)
        if subject is not None:
            since, until = find_window(budget, at)
            found.append(Sum(budget, SumKey(budget.pk, subject, since), until))
    return found


def read_uses(wanted: Iterable[Iterable[Sum]]) -> dict[SumKey, BudgetUse]:
    """Return these sums by key, with one query; those that are not stored yet are new."""
    keys = {one.key for sums in wanted for one in sums}
    stored = {}
    if keys:
        which = functools.reduce(operator.or_, (Q(**key.columns) for key in keys))
        rows = BudgetUse.objects.filter(which)
        stored = {SumKey(row.budget_id, row.subject, row.since): row for row in rows}
    return {key: stored.get(key) or key.make() for key in keys}


def find_left(use: BudgetUse, budget: Budget) -> Decimal:
    """Return the amount that is left of a sum; negative if more was used."""
    return budget.limit + use.allowed - use.used


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
    if find_left(use, stored) <= 0:
        ask(use, stored, task)
    return use.pk


def ask(use: BudgetUse, budget: Budget, task: int | None) -> None:
    """Ask operators about a sum that has nothing left, for a task, unless they are asked, or have refused."""
    if budget.action == BudgetAction.ASK and not use.refused and use.asked_at is None:
        BudgetUse.objects.filter(pk=use.pk).update(asked_at=Now(), asked_for=task)


def list_asking() -> QuerySet[BudgetUse]:
    """Return the sums about which operators are asked, oldest first (index `budget_asks`).

    They are not asked any more if the window has ended, the budget has room again, or the only task of the sum has ended.
    """
    now = clock.now()
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
    """Allow more than the limit to the subject of a sum, in its window. Runners soon wake as many runs as there is room for.

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
            allowed=F("allowed") + amount,
            refused=refused,
            asked_at=None,
            waited=True,
            changed_at=Now(),
        )
        # A caller can be erased, so the entry has the key of the row instead of the name.
        by_caller = row.budget.share == BudgetShare.CALLER
        subject = {"use": use} if by_caller else {"subject": row.subject}
        detail: dict[str, Any] = {**subject, "amount": str(amount)}
        audit.note(action, row.budget.name, detail=detail | ({"reason": reason} if reason else {}))
    return True


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
    """Wake the runs that wait for a budget: they read it again."""
    uses = BudgetUse.objects.filter(budget=budget).values("pk")
    waiting = Run.objects.filter(IS_PARKED, waits_for_budget__in=uses)
    waiting.update(due_at=Now(), waits_for_budget=None)


def forget_old(max_count: int) -> int:
    """Delete sums of windows that ended long ago, and sums of tasks that have not changed for as long; return their number."""
    old = BudgetUse.objects.filter(changed_at__lt=clock.now() - KEPT)
    ended = old.filter(~Q(budget__window=BudgetWindow.EVER) | Q(budget__share=BudgetShare.TASK))
    ended = ended.exclude(pk__in=list_asking().order_by().values("pk")).exclude(waited=True)
    keys = list(ended.values_list("pk", flat=True)[:max_count])
    BudgetHold.objects.filter(made_at__lt=Now() - FORGOTTEN).delete()
    return BudgetUse.objects.filter(pk__in=keys).delete()[0]
