"""The audit log: who did what, and whether that is sealed. Nothing here can be changed by anybody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from a2a_tasks.admin.filters import CreatedFilter, NewestAgentFilter
from a2a_tasks.admin.paging import newest
from a2a_tasks.admin.read_only import ReadOnlyAdmin, badge
from a2a_tasks.admin.shown import moment
from a2a_tasks.audit import Action
from a2a_tasks.models import AuditEntry, AuditLink

__all__ = ["AuditEntryAdmin"]

Rows = QuerySet[Any]


class ActionFilter(SimpleListFilter):
    """By what it is about, among the newest."""

    title = "about, among the newest 100,000"
    parameter_name = "about"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Iterable[Any]:
        """List what there are actions of."""
        kinds = dict.fromkeys(action.value.partition(".")[0] for action in Action)
        return [(kind, kind.replace("_", " ")) for kind in kinds]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one kind."""
        if not self.value():
            return queryset
        return newest(queryset).filter(action__startswith=f"{self.value()}.")


class OutcomeFilter(SimpleListFilter):
    """By what became of it, among the newest."""

    title = "outcome, among the newest 100,000"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Iterable[Any]:
        """List the two."""
        return [("done", "done"), ("refused", "refused")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one."""
        return newest(queryset).filter(outcome=self.value()) if self.value() else queryset


class SealFilter(SimpleListFilter):
    """By whether it is sealed, among the newest."""

    title = "seal, among the newest 100,000"
    parameter_name = "sealed"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> Iterable[Any]:
        """List the two."""
        return [("yes", "sealed"), ("no", "not yet")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one."""
        if self.value() not in {"yes", "no"}:
            return queryset
        return newest(queryset).filter(link__isnull=self.value() == "no")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """The list and the page of entries."""

    list_display = (
        *("created", "actor", "action", "object", "agent", "tenant"),
        *("outcome_badge", "detail", "seal"),
    )
    list_filter = (ActionFilter, OutcomeFilter, SealFilter, NewestAgentFilter, CreatedFilter)
    list_select_related = ("link",)
    search_fields = ("object",)
    search_help_text = "What it was done to (a task id, the prefix of a key ...), or who did it, complete; who among the newest 100,000."
    fields = (
        *("created", "actor", "action", "meaning", "object", "agent", "tenant"),
        *("outcome_badge", "detail", "request", "seal", "hash"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """With their links."""
        return super().get_queryset(request).select_related("link")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find by exact object, which has an index, else by exact actor."""
        wanted = search_term.strip()
        if not wanted or "\0" in wanted:
            return queryset, False
        if queryset.filter(object=wanted).exists():
            return queryset.filter(object=wanted), False
        return newest(queryset).filter(actor=wanted), False

    @admin.display(description="when")
    def created(self, row: AuditEntry) -> str:
        """Show the moment to the second."""
        return moment(row.created_at)

    @admin.display(description="outcome")
    def outcome_badge(self, row: AuditEntry) -> str:
        """Show the outcome as a word."""
        return badge(row.outcome)

    @admin.display(description="meaning")
    def meaning(self, row: AuditEntry) -> str:
        """Say what the action is, and the object with it."""
        return next((action.about for action in Action if action == row.action), "")

    @admin.display(description="seal")
    def seal(self, row: AuditEntry) -> str:
        """Say which place the entry has in the chain."""
        link = _link(row)
        return f"link {link.number}" if link else "not yet"

    @admin.display(description="hash")
    def hash(self, row: AuditEntry) -> str:
        """Show the hash of its link."""
        link = _link(row)
        return format_html("<code>{}</code>", link.hash) if link else ""


def _link(row: AuditEntry) -> AuditLink | None:
    return getattr(row, "link", None)
