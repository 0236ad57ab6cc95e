"""The audit log in the admin: actions, actors and seals. It is read-only for all users."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_console.admin.access.audit_verification import verify_for
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.columns import column, cut
from a2a_console.admin.widgets.filters import ChoiceFilter, CreatedFilter, NewestAgentFilter
from a2a_console.admin.widgets.paging import NewestFirst
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.admin.widgets.staff import demand
from a2a_console.search.bounded_rows import newest
from a2a_console.site import site
from a2a_console.staff import sees_all
from a2a_console.times import moment
from a2a_tasks.audit import HOST_WIDE, Action
from a2a_tasks.models import AuditEntry
from a2a_tasks.store import audit

__all__ = ["AuditEntryAdmin"]


class ActionFilter(ChoiceFilter):
    """A filter of the newest entries by type of object."""

    title = "object type (newest 100,000)"
    parameter_name = "about"
    offered = tuple(
        (kind, kind.replace("_", " "))
        for kind in dict.fromkeys(action.value.partition(".")[0] for action in Action)
    )

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one type."""
        if not self.value():
            return queryset
        return newest(queryset).filter(action__startswith=f"{self.value()}.")


class OutcomeFilter(ChoiceFilter):
    """A filter of the newest entries by outcome."""

    title = "outcome (newest 100,000)"
    parameter_name = "outcome"
    offered = (("done", "done"), ("refused", "refused"))

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one outcome."""
        return newest(queryset).filter(outcome=self.value()) if self.value() else queryset


class SealFilter(ChoiceFilter):
    """A filter of the newest entries: sealed or not yet."""

    title = "seal (newest 100,000)"
    parameter_name = "sealed"
    offered = (("yes", "sealed"), ("no", "not yet"))

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Narrow to one state."""
        if self.value() not in {"yes", "no"}:
            return queryset
        return newest(queryset).filter(link__isnull=self.value() == "no")


@admin.register(AuditEntry, site=site)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """The list and the page of entries."""

    list_display = ("created", "who", "what", "done_to", "detail_cut", "place")
    own_views = ("verify/",)
    change_list_template = "admin/a2a_tasks/auditentry/list.html"
    list_filter = (ActionFilter, OutcomeFilter, SealFilter, NewestAgentFilter, CreatedFilter)
    list_select_related = ("link",)
    search_fields = ("object",)
    search_help_text = "Exact object id or principal. Principals: newest 100,000 entries only."
    fields = (
        *("created", "actor", "action", "meaning", "object", "agent", "tenant"),
        *("outcome_badge", "detail", "request", "seal", "hash"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """Return the entries with their links. Host-wide entries are left out for users who see only some tenants."""
        rows = super().get_queryset(request).select_related("link")
        return rows if sees_all(request.user) else rows.exclude(action__in=HOST_WIDE)

    # -- verification

    def may_verify(self, request: HttpRequest) -> bool:
        """Return whether the user may verify. The chain covers all tenants, so the user has to see all of them."""
        return sees_all(request.user) and self.has_view_permission(request)

    @method_decorator(require_POST)
    @method_decorator(never_cache)
    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Verify the chain for some seconds, from where the last request stopped. The page posts until the end."""
        demand(self.may_verify(request))
        found = verify_for(request.POST.get("so_far", ""))
        title = "Verifying the audit log"
        return self.show(request, "a2a_tasks/auditentry/verify", title, found=found)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with the button for users who may verify."""
        more = {"may_verify": self.may_verify(request), **(extra_context or {})}
        return super().changelist_view(request, more)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """Return the list that shows principals by name."""
        return principals.NamingList

    @staticmethod
    def principal_of(row: AuditEntry) -> str:
        """Return the actor."""
        return row.actor

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by exact object, which has an index, else by exact actor."""
        if "\0" in wanted:
            return rows
        found = rows.filter(object=wanted)
        return found if found.exists() else newest(rows).filter(actor=wanted)

    created = column("when", lambda row: moment(row.created_at))
    who = column("actor", lambda row: principals.link_of(row, row.actor))
    detail_cut = column("detail", lambda row: cut(row.detail))
    outcome_badge = column("outcome", lambda row: badge(row.outcome))
    #: The place of the entry in the chain of hashes, if it has one.
    place = column("link", lambda row: str(row.link.number) if hasattr(row, "link") else "not yet")
    seal = column(
        "seal", lambda row: f"link {row.link.number}" if hasattr(row, "link") else "not yet"
    )
    hash = column(
        "hash",
        lambda row: format_html("<code>{}</code>", row.link.hash) if hasattr(row, "link") else "",
    )
    meaning = column(
        "meaning", lambda row: next((action.about for action in Action if action == row.action), "")
    )

    @admin.display(description="action")
    def what(self, row: AuditEntry) -> str:
        """Show the action, with a badge if it was refused."""
        refused = badge(row.outcome) if row.outcome == audit.REFUSED else ""
        return format_html("{} {}", row.action, refused)

    @admin.display(description="object")
    def done_to(self, row: AuditEntry) -> str:
        """Show the object, with its agent and tenant below."""
        whose = " · ".join(filter(None, (row.agent, row.tenant)))
        return format_html('{}<span class="a2a-note">{}</span>', cut(row.object), whose)
