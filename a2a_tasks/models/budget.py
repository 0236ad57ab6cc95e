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
    """The time after which a sum resets, in UTC."""

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
        "resets", max_length=16, choices=BudgetWindow.choices, default=BudgetWindow.EVER
    )
    action = models.CharField(
        "when it is used up",
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
    #: Number of reports or charges that were added: `used / charges` is the mean of one.
    charges = models.BigIntegerField(default=0, db_default=0)
    #: The amount that operators have allowed beyond the limit.
    allowed = models.DecimalField(max_digits=32, decimal_places=12, default=0)
    #: The time since which operators are asked, and the key of the first task that waits; null = they are not asked.
    asked_at = models.DateTimeField(null=True, blank=True)
    asked_for = models.BigIntegerField(null=True, blank=True)
    #: True if an operator has refused to allow more.
    refused = models.BooleanField(default=False)
    #: True if parked runs may wait for it. Each runner looks once a second whether there is room for them.
    waited = models.BooleanField(default=False, db_default=False)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "budget usage"
        verbose_name_plural = "budget usage"
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "since"], name="one_sum_of_a_budget"
            ),
        ]
        indexes = [
            models.Index("asked_at", name="budget_asks", condition=Q(asked_at__isnull=False)),
            models.Index("since", name="budget_since"),
            models.Index("id", name="budget_waited", condition=Q(waited=True)),
        ]

    def __str__(self) -> str:
        return f"{self.budget} {self.subject}".strip()


class BudgetHold(models.Model):
    """The part of a sum that is reserved for the next call of a run.

    It counts while the run has the lease with this token, so the end, the death and the park of the run give it back. No
    foreign keys: a row whose run or sum is gone counts nothing, and is deleted with old sums.
    """

    #: The keys of the budget, of its sum (`BudgetUse`), and of the run.
    budget = models.BigIntegerField()
    use = models.BigIntegerField()
    run = models.BigIntegerField()
    #: The token of the lease; empty = the run was woken, and has not been admitted yet.
    token = models.CharField(max_length=40, blank=True, default="", db_index=True)
    amount = models.DecimalField(max_digits=32, decimal_places=12)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["use", "run"], name="one_hold_of_a_run"),
        ]

    def __str__(self) -> str:
        return f"hold of run {self.run}"
