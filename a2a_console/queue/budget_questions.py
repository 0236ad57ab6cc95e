"""Questions to operators about budgets that have nothing left."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.utils import timezone

from a2a_console.staff import sees_all
from a2a_console.times import duration, moment
from a2a_tasks.models import IS_PARKED, Budget, BudgetUse, Run
from a2a_tasks.store.budgets import list_asking, write_amount

__all__ = ["BudgetQuestion", "list_questions", "may_decide"]

_User = AbstractUser | AnonymousUser
#: The largest number of questions on one page, and of runs that are counted for each.
MOST, COUNTED = 50, 1000


@dataclass(frozen=True, kw_only=True)
class BudgetQuestion:
    """A sum that has reached its limit, and the number of runs that wait for it."""

    use: BudgetUse
    #: The number of runs that wait for it, at most COUNTED.
    waiting: int

    @property
    def budget(self) -> Budget:
        """The budget."""
        return self.use.budget

    @property
    def text(self) -> str:
        """The question."""
        budget, use = self.budget, self.use
        limit = write_amount(budget.limit + use.allowed, budget)
        more = write_amount(budget.limit, budget)
        return f"Spent {write_amount(use.used, budget)} of {limit}: allow {more} more?"

    @property
    def age(self) -> str:
        """The time for which it has been asked."""
        return duration(timezone.now() - self.use.asked_at) if self.use.asked_at else ""

    @property
    def since(self) -> str:
        """The moment since which it has been asked."""
        return moment(self.use.asked_at) if self.use.asked_at else ""


def may_decide(user: _User) -> bool:
    """Return whether the user may decide: it takes the permission, and the right to see all tenants."""
    return user.has_perm("a2a_tasks.change_budgetuse") and sees_all(user)


def list_questions(user: _User) -> list[BudgetQuestion]:
    """Return the questions that the user may see, oldest first."""
    rights = ("a2a_tasks.view_budgetuse", "a2a_tasks.change_budgetuse")
    if not (any(map(user.has_perm, rights)) and sees_all(user)):
        return []
    parked = Run.objects.filter(IS_PARKED)
    return [
        BudgetQuestion(use=use, waiting=parked.filter(waits_for_budget=use.pk)[:COUNTED].count())
        for use in list_asking()[:MOST]
    ]
