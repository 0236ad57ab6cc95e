"""Budgets: limits of the work of agents, and the sums that were used. `store/budgets.py` writes them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class BudgetUnit(models.TextChoices):
    """The unit in which a budget limits work."""

    TOKENS = "tokens", "tokens"  #: input and output tokens of models
    COST = "cost", "money"  #: the cost of models, in the currency of the budget
    CALLS = "calls", "model calls"
    SECONDS = "seconds", "seconds of work"  #: the time in which agents run


class BudgetShare(models.TextChoices):
    """The parties that share one sum of a budget."""

    ALL = "all", "all together"
    TENANT = "tenant", "each tenant"
    CALLER = "caller", "each caller"
    AGENT = "agent", "each agent"
    TASK = "task", "each task"


class BudgetWindow(models.TextChoices):
    """The time after which a sum begins anew, in UTC."""

    EVER = "ever", "never"
    HOUR = "hour", "every hour"
    DAY = "day", "every day"
    MONTH = "month", "every month"


class BudgetAction(models.TextChoices):
    """The treatment of work for which a budget has nothing left."""

    REFUSE = "refuse", "refuse it"  #: new messages are refused, and runs fail
    PAUSE = "pause", "pause it"  #: runs wait for the next window
    ASK = "ask", "ask an operator"  #: runs wait until an operator allows more


class Budget(models.Model):
    """A limit. It counts the runs of its agent, tenant and caller; an empty field stands for all."""

    name = models.CharField(max_length=80, unique=True)
    unit = models.CharField("limits", max_length=16, choices=BudgetUnit.choices)
    limit = models.DecimalField(max_digits=20, decimal_places=6)
    #: The currency of a budget of money (ISO 4217); costs in others do not count.
    currency = models.CharField(max_length=3, default="USD")
    share = models.CharField(
        "counted for", max_length=16, choices=BudgetShare.choices, default=BudgetShare.ALL
    )
    window = models.CharField(
        "begins anew", max_length=16, choices=BudgetWindow.choices, default=BudgetWindow.EVER
    )
    action = models.CharField(
        "with nothing left",
        max_length=16,
        choices=BudgetAction.choices,
        default=BudgetAction.REFUSE,
    )
    agent = models.CharField(max_length=64, blank=True, default="")
    tenant = models.CharField(max_length=256, blank=True, default="")
    caller = models.CharField(max_length=256, blank=True, default="")
    enabled = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(limit__gte=0), name="a_budget_is_not_negative"),
            models.CheckConstraint(
                condition=~Q(action=BudgetAction.PAUSE, window=BudgetWindow.EVER),
                name="a_pause_has_an_end",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class BudgetUse(models.Model):
    """The use of a budget by one subject in one window."""

    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, related_name="uses")
    #: The tenant, the caller, the slug of the agent, or the key of the task; empty = all together.
    subject = models.CharField(max_length=256, blank=True, default="")
    #: The beginning of the window.
    since = models.DateTimeField()
    used = models.DecimalField(max_digits=32, decimal_places=12, default=0)
    #: The amount that operators have allowed beyond the limit.
    allowed = models.DecimalField(max_digits=32, decimal_places=12, default=0)
    #: The time since which operators are asked, and the key of the first task that waits; null = they are not asked.
    asked_at = models.DateTimeField(null=True, blank=True)
    asked_for = models.BigIntegerField(null=True, blank=True)
    #: True if an operator has refused to allow more.
    refused = models.BooleanField(default=False)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "use of a budget"
        verbose_name_plural = "uses of budgets"
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "since"], name="one_sum_of_a_budget"
            ),
        ]
        indexes = [
            models.Index("asked_at", name="budget_asks", condition=Q(asked_at__isnull=False)),
            models.Index("since", name="budget_since"),
        ]

    def __str__(self) -> str:
        return f"{self.budget} {self.subject}".strip()
