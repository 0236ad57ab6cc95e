"""Budgets, and what has been used of them. Operators allow more here, and in the inbox."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.filters import BudgetFilter
from a2a_console.admin.widgets.paging import BoundedPaginator
from a2a_console.admin.widgets.staff import HostWideAdmin, ModelForm, demand, refuse
from a2a_console.queue.budget_questions import may_decide
from a2a_console.site import page_url, site
from a2a_tasks.agents.usage import is_currency
from a2a_tasks.models import Budget, BudgetAction, BudgetUse, BudgetWindow
from a2a_tasks.store import budgets

__all__ = ["BudgetAdmin", "BudgetUseAdmin"]

MAX_REASON = 500


class BudgetForm(ModelForm[Budget]):
    """The form of a budget."""

    class Meta:
        model = Budget
        fields = (
            *("name", "unit", "limit", "currency", "share", "window", "action"),
            *("agent", "tenant", "caller", "enabled"),
        )
        help_texts = {
            "name": "Clients read it when their message is refused.",
            "currency": "For money: costs in other currencies do not count.",
            "share": "The work that shares one sum. For each caller: every caller has the whole limit.",
            "window": "In UTC.",
            "action": "A run under way may use one more call of a model. Only a budget that resets can pause work.",
            "agent": "Counts only runs of this agent. Empty = of all.",
            "tenant": "Counts only callers of this tenant. Empty = of all.",
            "caller": "Counts only this caller, such as key:k3vbd7yq2mza. Empty = all.",
        }

    def clean_currency(self) -> str:
        """Refuse a text that is no currency: the budget would count nothing."""
        currency: str = self.cleaned_data["currency"]
        if not is_currency(currency):
            raise ValidationError("A currency is three capital letters.")
        return currency

    def clean(self) -> dict[str, Any]:
        """Refuse a pause that would never end."""
        cleaned = super().clean() or {}
        if (cleaned.get("action"), cleaned.get("window")) == (
            BudgetAction.PAUSE,
            BudgetWindow.EVER,
        ):
            raise ValidationError({"action": "A budget that never resets cannot pause work."})
        return cleaned


@admin.register(Budget, site=site)
class BudgetAdmin(HostWideAdmin[Budget]):
    """The list and the page of budgets."""

    form = BudgetForm
    list_display = (
        *("name", "limit", "unit", "share", "window", "action"),
        *("agent", "tenant", "caller", "enabled"),
    )
    list_filter = ("unit", "share", "action", "enabled")
    search_fields = ("name", "agent", "tenant", "caller")
    ordering = ("name",)

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        """Write the budget."""
        budgets.save(obj)

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        """Delete the budget."""
        budgets.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        """Delete several budgets."""
        for budget in queryset:
            budgets.delete(budget)


@admin.register(BudgetUse, site=site)
class BudgetUseAdmin(HostWideAdmin[BudgetUse]):
    """The list of sums, and the decision about one. Only the host writes them."""

    list_display = ("budget", "whose", "since", "used_of", "more", "asked_at", "refused")
    list_filter = (BudgetFilter, ("asked_at", admin.EmptyFieldListFilter), "refused")
    list_select_related = ("budget",)
    search_fields = ("subject",)
    search_help_text = "A part of a tenant, caller or agent."
    ordering = ("-pk",)
    paginator = BoundedPaginator
    show_full_result_count = False
    actions = None
    fields = readonly_fields = list_display
    change_form_template = "admin/a2a_tasks/budgetuse/page.html"
    own_views = ("<int:object_id>/decide/",)
    whose = column("of", lambda row: row.subject or "all together")
    more = column("allowed", lambda row: budgets.write_amount(row.allowed, row.budget))
    used_of = column(
        "used",
        lambda row: (
            f"{budgets.write_amount(row.used, row.budget)} of "
            f"{budgets.write_amount(row.budget.limit + row.allowed, row.budget)}"
        ),
    )

    #: Reports of usage make sums. One that is deleted would allow the whole limit again.
    has_add_permission = has_delete_permission = refuse

    @method_decorator(require_POST)
    def decide_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Allow more of a budget, or no more."""
        demand(may_decide(request.user))
        key, reason = int(object_id), request.POST.get("reason", "")[:MAX_REASON]
        if request.POST.get("do") == "refuse":
            done = budgets.refuse(key, reason)
            text = "Refused: the runs that wait for it will fail."
        else:
            try:
                done = budgets.allow(key, Decimal(request.POST.get("amount", "").strip()), reason)
            except (InvalidOperation, ValueError) as fault:
                text = "More must be a positive number." if isinstance(fault, ValueError) else ""
                self.message_user(request, text or "This is not a number.", messages.ERROR)
                return self._back(request)
            text = "Allowed: the runs that wait for it will go on."
        if done:
            self.message_user(request, text, messages.SUCCESS)
        else:
            self.message_user(request, "This sum does not exist any more.", messages.WARNING)
        return self._back(request)

    @staticmethod
    def _back(request: HttpRequest) -> HttpResponse:
        where = "waiting" if request.POST.get("from") == "inbox" else "budgetuse"
        return HttpResponseRedirect(page_url(f"a2a_tasks_{where}_changelist"))
