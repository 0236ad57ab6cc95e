"""Grants: who may do what with which agent. They are made and deleted here, one by one; there is nothing to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from a2a_tasks.access import grants
from a2a_tasks.admin.staff import HostWideAdmin
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import listed
from a2a_tasks.models import ALL, ApiKey, Grant, Right

if TYPE_CHECKING:
    _Form = forms.ModelForm[Grant]
else:
    _Form = forms.ModelForm

__all__ = ["GrantAdmin"]

#: How each kind of grantee is written, for the form.
GRANTEES = (
    "key:k3vbd7yq2mza (the prefix of an API key), jwt:https://issuer sub, user:7 (the id of a user), cert:spiffe://...; "
    "scope:billing (who has that scope; a user's groups are scopes), tenant:acme; * is everybody whom the host lets in."
)


class GrantForm(_Form):
    """What is granted."""

    class Meta:
        model = Grant
        fields = ("agent", "grantee", "right")
        help_texts = {
            "agent": "Its slug; * stands for all agents.",
            "grantee": GRANTEES,
            "right": "Whoever may use or operate an agent may see it, too. See granted to * makes its card public.",
        }

    def clean(self) -> dict[str, Any]:
        """Refuse what is no agent, or nobody."""
        said = super().clean() or {}
        if {"agent", "grantee"} <= said.keys() and (
            flaw := grants.flaw_of(said["agent"], said["grantee"])
        ):
            raise ValidationError(flaw)
        return said


@admin.register(Grant)
class GrantAdmin(HostWideAdmin[Grant]):
    """The list of grants, and the form of a new one."""

    form = GrantForm
    list_display = ("agent", "counts", "grantee", "known_as", "right", "created_at")
    list_filter = ("agent", "right")
    list_per_page = 50
    search_fields = ("agent", "grantee")
    search_help_text = "A part of an agent's slug, or of whom it was granted to."
    ordering = ("agent", "grantee", "right")

    def has_change_permission(self, request: HttpRequest, obj: Grant | None = None) -> bool:
        """Refuse: delete it and grant another."""
        return False

    @admin.display(description="in force", boolean=True)
    def counts(self, row: Grant) -> bool:
        """Say whether anybody asks for it: an open agent is for whoever is let in, and operated by few all the same."""
        if row.right == Right.OPERATE:
            return True
        if row.agent == ALL:
            return registry.any_listed()
        agent = registry.find(row.agent)
        return agent is not None and listed(agent)

    @admin.display(description="known as")
    def known_as(self, row: Grant) -> str:
        """Name the key or the user."""
        kind, _, name = row.grantee.partition(":")
        if kind == "key":
            return ApiKey.objects.filter(prefix=name).values_list("name", flat=True).first() or ""
        if kind == "user" and name.isdecimal():
            user = get_user_model().objects.filter(pk=name).first()
            return user.get_username() if user else ""
        return ""

    def save_model(self, request: HttpRequest, obj: Grant, form: Any, change: bool) -> None:
        """Grant it."""
        grants.grant(obj.agent, obj.grantee, obj.right)
        obj.pk = Grant.objects.get(agent=obj.agent, grantee=obj.grantee, right=obj.right).pk

    def delete_model(self, request: HttpRequest, obj: Grant) -> None:
        """Take it away again."""
        grants.withdraw(obj.agent, obj.grantee, obj.right)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Grant]) -> None:
        """Take several away."""
        for row in queryset:
            grants.withdraw(row.agent, row.grantee, row.right)
