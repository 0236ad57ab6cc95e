"""Budgets in the API: limits, used amounts, and the decisions of operators."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import PageQuerySerializer, key_field
from a2a_console.api.viewsets import HostViewSet
from a2a_console.times import MomentField
from a2a_tasks.models import Budget, BudgetUse
from a2a_tasks.store import budgets
from a2a_tasks.store.budgets import list_asking

__all__ = ["BudgetUseViewSet", "BudgetViewSet"]

TO_DECIDE = RequiredRight.to_change("a2a_tasks.budgetuse")


class BudgetSerializer(serializers.ModelSerializer[Budget]):
    """A budget."""

    key = serializers.IntegerField(source="pk")

    class Meta:
        model = Budget
        fields = (
            *("key", "name", "unit", "limit", "currency", "share", "window", "action"),
            *("agent", "tenant", "caller", "enabled"),
        )
        extra_kwargs = {
            "share": {"help_text": "The work that shares one sum."},
            "window": {"help_text": "Time after which the sum resets, in UTC."},
            "action": {"help_text": "Effect on work for which nothing is left."},
            "agent": {"help_text": "The agent whose runs count. Empty: all agents."},
            "tenant": {"help_text": "The tenant whose callers count. Empty: all tenants."},
            "caller": {"help_text": "The caller who counts. Empty: all callers."},
        }


class BudgetUseSerializer(serializers.ModelSerializer[BudgetUse]):
    """The used amount of a budget in one period."""

    key = serializers.IntegerField(source="pk")
    budget = serializers.CharField(source="budget.name")
    limit = serializers.DecimalField(source="budget.limit", max_digits=20, decimal_places=6)
    since = MomentField(help_text="Start of the window.")
    asked_at = MomentField(
        allow_null=True,
        help_text="Time since which operators are asked to allow more; null: they are not asked.",
    )

    class Meta:
        model = BudgetUse
        fields = (
            *("key", "budget", "subject", "since", "used"),
            *("limit", "allowed", "asked_at", "refused"),
        )
        extra_kwargs = {
            "subject": {
                "help_text": "The tenant, caller or agent, or the number of the task, whose work is summed. Empty: all work."
            },
            "allowed": {"help_text": "Amount that operators have allowed beyond the limit."},
            "refused": {"help_text": "True if an operator has refused to allow more."},
        }


class BudgetUseQuerySerializer(PageQuerySerializer):
    """The filters of sums."""

    budget = key_field()
    asking = serializers.BooleanField(
        required=False, help_text="True: only the sums about which operators are asked."
    )


class AllowSerializer(serializers.Serializer[Any]):
    """The decision of an operator who allows more."""

    amount = serializers.DecimalField(
        max_digits=20,
        decimal_places=6,
        min_value=0,
        help_text="Amount to allow: more than 0, in the unit of the budget.",
    )
    reason = serializers.CharField(required=False, allow_blank=True, max_length=500)


class RefuseSerializer(serializers.Serializer[Any]):
    """The decision of an operator who refuses more."""

    reason = serializers.CharField(required=False, allow_blank=True, max_length=500)


class BudgetViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[Budget]):
    """The budgets. For operators of a tenant the list is empty."""

    queryset = Budget.objects.all()
    serializer_class = BudgetSerializer
    request_serializer_classes = {"list": PageQuerySerializer}
    required_right = RequiredRight.to_view("a2a_tasks.budget")

    def get_queryset(self) -> QuerySet[Budget]:
        """Return the budgets; none for operators of a tenant."""
        return Budget.objects.all() if self.operator.sees_all else Budget.objects.none()


class BudgetUseViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[BudgetUse]):
    """The used amounts of budgets. For operators of a tenant the list is empty."""

    queryset = BudgetUse.objects.select_related("budget")
    serializer_class = BudgetUseSerializer
    request_serializer_classes = {"list": BudgetUseQuerySerializer}
    filter_lookups = {"budget": "budget"}
    required_right = RequiredRight.to_view("a2a_tasks.budgetuse")

    def get_queryset(self) -> QuerySet[BudgetUse]:
        """Return the sums; none for operators of a tenant."""
        rows = BudgetUse.objects.select_related("budget")
        if not self.operator.sees_all:
            return rows.none()
        asking = self.action == "list" and self.given.get("asking", False)
        return rows.filter(pk__in=list_asking().order_by().values("pk")) if asking else rows

    @action(
        detail=True,
        methods=["post"],
        required_right=TO_DECIDE,
        request_serializer_class=AllowSerializer,
    )
    def allow(self, request: Request, key: int) -> Response:
        """Allow more than the limit until the budget resets. The runs that wait for it go on."""
        given = self.given
        try:
            budgets.allow(self.get_object().pk, given["amount"], given.get("reason", ""))
        except ValueError as fault:
            raise serializers.ValidationError({"amount": str(fault)}) from None
        return self.retrieve(request)

    @action(
        detail=True,
        methods=["post"],
        required_right=TO_DECIDE,
        request_serializer_class=RefuseSerializer,
    )
    def refuse(self, request: Request, key: int) -> Response:
        """Allow no more. The runs that wait for it fail, and new messages are refused, until the budget resets."""
        budgets.refuse(self.get_object().pk, self.given.get("reason", ""))
        return self.retrieve(request)
