"""Grants of rights at agents. Each is created and deleted here; there is nothing to change in one."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from a2a_console.admin.widgets.filters import GrantedAgentFilter
from a2a_console.admin.widgets.staff import HostWideAdmin, ModelForm, refuse
from a2a_console.site import site
from a2a_tasks.access import grants
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import is_listed
from a2a_tasks.models import ALL, ApiKey, Grant, GrantRight

__all__ = ["GrantAdmin"]

#: The notation of each kind of grantee, for the form.
GRANTEES = (
    "key:k3vbd7yq2mza (the prefix of an API key), jwt:https://issuer sub, user:7 (the id of a user), cert:spiffe://...; "
    "scope:billing (callers with that scope; the groups of a user are scopes), tenant:acme; * is every accepted caller."
)


class GrantForm(ModelForm[Grant]):
    """The form of a grant."""

    class Meta:
        model = Grant
        fields = ("agent", "grantee", "right")
        help_texts = {
            "agent": "Its slug; * stands for all agents.",
            "grantee": GRANTEES,
            "right": "The rights use and operate include see. See granted to * makes the agent's card public.",
        }

    def clean(self) -> dict[str, Any]:
        """Refuse an agent or a grantee that is not valid."""
        cleaned = super().clean() or {}
        if {"agent", "grantee"} <= cleaned.keys() and (
            flaw := grants.flaw_of(cleaned["agent"], cleaned["grantee"])
        ):
            raise ValidationError(flaw)
        return cleaned


@admin.register(Grant, site=site)
class GrantAdmin(HostWideAdmin[Grant]):
    """The list of grants, and the form of a new one."""

    form = GrantForm
    list_display = ("agent", "counts", "grantee", "known_as", "right", "created_at")
    list_filter = (GrantedAgentFilter, "right")
    list_per_page = 50
    search_fields = ("agent", "grantee")
    search_help_text = "A part of an agent's slug, or of whom it was granted to."
    ordering = ("agent", "grantee", "right")

    #: A grant is deleted, and another one made.
    has_change_permission = refuse

    @admin.display(description="in force", boolean=True)
    def counts(self, row: Grant) -> bool:
        """Return whether the grant has an effect. Any caller may see and use an open agent, so only OPERATE has one."""
        if row.right == GrantRight.OPERATE:
            return True
        if row.agent == ALL:
            return registry.has_listed()
        agent = registry.find(row.agent)
        return agent is not None and is_listed(agent)

    @admin.display(description="known as")
    def known_as(self, row: Grant) -> str:
        """Return the name of the key or the user."""
        kind, _, name = row.grantee.partition(":")
        if kind == "key":
            return ApiKey.objects.filter(prefix=name).values_list("name", flat=True).first() or ""
        if kind == "user" and name.isdecimal():
            user = get_user_model().objects.filter(pk=name).first()
            return user.get_username() if user else ""
        return ""

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        """Write the grant."""
        grants.grant(obj.agent, obj.grantee, obj.right)
        obj.pk = Grant.objects.get(agent=obj.agent, grantee=obj.grantee, right=obj.right).pk

    def delete_model(self, request: HttpRequest, obj: Grant) -> None:
        """Withdraw the grant."""
        grants.withdraw(obj.agent, obj.grantee, obj.right)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Grant]) -> None:
        """Withdraw several grants."""
        for row in queryset:
            grants.withdraw(row.agent, row.grantee, row.right)
