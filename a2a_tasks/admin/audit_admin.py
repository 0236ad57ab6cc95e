"""The audit log: who did what, and whether that is sealed. Nothing here can be changed by anybody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from a2a_tasks.admin import principals
from a2a_tasks.admin.audit_verifying import verified_for
from a2a_tasks.admin.filters import CreatedFilter, NewestAgentFilter
from a2a_tasks.admin.paging import NewestFirst, newest
from a2a_tasks.admin.read_only import ReadOnlyAdmin, badge
from a2a_tasks.admin.shown import moment, named
from a2a_tasks.admin.staff import sees_all
from a2a_tasks.audit import HOST_WIDE, Action
from a2a_tasks.models import AuditEntry, AuditLink
from a2a_tasks.store import audit

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


class NamedActors(NewestFirst):
    """The list, with the names of those who did it."""

    def get_results(self, request: HttpRequest) -> None:
        """Look them up together."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        known = principals.names({row.actor for row in self.result_list})
        for row in self.result_list:
            row.actor_name = known.get(row.actor, "")  # for its column


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """The list and the page of entries."""

    list_display = ("created", "who", "what", "done_to", "told", "place")
    change_list_template = "admin/a2a_tasks/auditentry/list.html"
    list_filter = (ActionFilter, OutcomeFilter, SealFilter, NewestAgentFilter, CreatedFilter)
    list_select_related = ("link",)
    search_fields = ("object",)
    search_help_text = "What it was done to (a task id, the prefix of a key ...), or who did it, complete; who among the newest 100,000."
    fields = (
        *("created", "actor", "action", "meaning", "object", "agent", "tenant"),
        *("outcome_badge", "detail", "request", "seal", "hash"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        """With their links. What concerns the whole host is not there for who sees some of its tenants."""
        rows = super().get_queryset(request).select_related("link")
        return rows if sees_all(request.user) else rows.exclude(action__in=HOST_WIDE)

    # -- verifying

    def may_verify(self, request: HttpRequest) -> bool:
        """Tell whether the user may: the chain is of all tenants, so those who see them all."""
        return sees_all(request.user) and self.has_view_permission(request)

    @method_decorator(require_POST)
    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Verify the chain for some seconds, from where the last answer had come; it is posted again until the end."""
        if not self.may_verify(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Verifying the audit log",
            "found": verified_for(request.POST.get("so_far", "")),
        }
        response = TemplateResponse(request, "admin/a2a_tasks/auditentry/verify.html", context)
        add_never_cache_headers(response)
        return response

    def get_urls(self) -> list[URLPattern]:
        """Put the button's address before the stock ones."""
        view = self.admin_site.admin_view(self.verify_view)
        return [path("verify/", view, name="a2a_tasks_auditentry_verify"), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With the button, for who may verify."""
        more = {"may_verify": self.may_verify(request), **(extra_context or {})}
        return super().changelist_view(request, more)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestFirst]:
        """Return the list that knows names."""
        return NamedActors

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

    @admin.display(description="who")
    def who(self, row: AuditEntry) -> str:
        """Show who did it, by name if it has one; whoever points at it has the principal."""
        name = getattr(row, "actor_name", "")
        if not name:
            return _cut(row.actor)
        return format_html('<span class="a2a-cut" title="{}">{}</span>', row.actor, named(name))

    @admin.display(description="action")
    def what(self, row: AuditEntry) -> str:
        """Show the action, and that it was refused."""
        refused = badge(row.outcome) if row.outcome == audit.REFUSED else ""
        return format_html("{} {}", row.action, refused)

    @admin.display(description="object")
    def done_to(self, row: AuditEntry) -> str:
        """Show the object, with whose it is below."""
        whose = " · ".join(filter(None, (row.agent, row.tenant)))
        return format_html('{}<span class="a2a-note">{}</span>', _cut(row.object), whose)

    @admin.display(description="detail")
    def told(self, row: AuditEntry) -> str:
        """Show what is kept of it, cut."""
        return _cut(row.detail)

    @admin.display(description="outcome")
    def outcome_badge(self, row: AuditEntry) -> str:
        """Show the outcome as a word."""
        return badge(row.outcome)

    @admin.display(description="meaning")
    def meaning(self, row: AuditEntry) -> str:
        """Say what the action is, and the object with it."""
        return next((action.about for action in Action if action == row.action), "")

    @admin.display(description="link")
    def place(self, row: AuditEntry) -> str:
        """Show the number of its link in the chain."""
        link = _link(row)
        return str(link.number) if link else "not yet"

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


def _cut(text: str) -> str:
    """The text, cut by the style: whoever points at it, or selects it, has all of it."""
    return format_html('<span class="a2a-cut" title="{}">{}</span>', text, text) if text else ""


def _link(row: AuditEntry) -> AuditLink | None:
    return getattr(row, "link", None)
