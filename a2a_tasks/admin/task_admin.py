"""Tasks: find one, read all that happened to it, cancel it."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.files.storage import storages
from django.db.models import Q, QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from a2a_tasks.admin import beside, timeline
from a2a_tasks.admin.cancelling import Outcome, cancel
from a2a_tasks.admin.filters import AgentFilter, CreatedFilter, DialectFilter, StateFilter
from a2a_tasks.admin.paging import AtLeast, bounded_count
from a2a_tasks.admin.read_only import ReadOnlyAdmin, badge
from a2a_tasks.admin.shown import duration, moment
from a2a_tasks.admin.staff import may_view, within
from a2a_tasks.models import Context, Run, StoredFile, Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log
from a2a_tasks.store.files import STORAGE

__all__ = ["TaskAdmin"]

#: Tasks one action cancels; each is a transaction of its own.
AT_ONCE = 1_000
#: Contexts of one id (of different owners) that a search follows.
CONTEXTS = 100
CANCELLABLE = sorted(set(TaskState) - TERMINAL)


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin[Task]):
    """The list and the page of tasks."""

    list_display = (
        "short_id",
        "state_badge",
        "agent",
        "owner_cut",
        "created",
        "lasted",
        "context_link",
    )
    list_filter = (StateFilter, AgentFilter, CreatedFilter, DialectFilter)
    list_select_related = ("context",)
    search_fields = ("public_id",)
    search_help_text = "A task id or a context id, complete."
    actions = ("cancel_selected",)
    fields = (
        "state_badge",
        "lasted",
        "created",
        "since",
        "agent",
        "owner",
        "made_by",
        "tenant",
        "origin_dialect",
        "context_link",
    )
    change_form_template = "admin/a2a_tasks/task/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Leave the bodies where they are; the page reads them by slices."""
        rows = super().get_queryset(request).select_related("context")
        return rows.defer("status_message", "metadata", "memory", "run_token")

    def get_fields(self, request: HttpRequest, obj: Task | None = None) -> Any:
        """Name the predecessor where there is one."""
        fields = super().get_fields(request, obj)
        return [*fields, "predecessor_link"] if obj and obj.predecessor_id else fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        """Find by exact id. The context comes first, in a query of its own: an OR across a join has no index."""
        wanted = search_term.strip()
        if not wanted:
            return queryset, False
        contexts = within(Context.objects.filter(public_id=wanted), request.user)
        keys = list(contexts.values_list("pk", flat=True)[:CONTEXTS])
        found = Q(public_id=wanted) | Q(context_id__in=keys)
        return queryset.filter(found), False

    # -- columns and fields

    @admin.display(description="task id")
    def short_id(self, task: Task) -> str:
        """Show the id, cut: it is the client's own word, up to 256 characters."""
        return Truncator(task.public_id).chars(40)

    @admin.display(description="state")
    def state_badge(self, task: Task) -> str:
        """Show the state as a word."""
        return badge(TaskState(task.state).word)

    @admin.display(description="context")
    def context_link(self, task: Task) -> str:
        """Link to the conversation."""
        url = reverse("admin:a2a_tasks_context_change", args=[task.context_id])
        return format_html('<a class="a2a-id" href="{}">{}</a>', url, task.context.public_id)

    @admin.display(description="began anew after")
    def predecessor_link(self, task: Task) -> str:
        """Link to the ended task whose id this one took over."""
        found = Task.objects.filter(pk=task.predecessor_id or 0).only("public_id").first()
        if found is None:
            return "a task that is gone"
        url = reverse("admin:a2a_tasks_task_change", args=[found.pk])
        return format_html('<a class="a2a-id" href="{}">{}</a>', url, found.public_id)

    @admin.display(description="owner")
    def owner_cut(self, task: Task) -> str:
        """Show who made the task, on one line."""
        shown = task.maker or task.owner
        return format_html('<span class="a2a-cut" title="{}">{}</span>', shown, shown)

    @admin.display(description="made by")
    def made_by(self, task: Task) -> str:
        """Name the owner, or who made what a tenant shares."""
        return task.maker or task.owner

    @admin.display(description="created")
    def created(self, task: Task) -> str:
        """Show the moment to the second."""
        return moment(task.created_at)

    @admin.display(description="status since")
    def since(self, task: Task) -> str:
        """Show the moment of the last change of state."""
        return moment(task.status_at)

    @admin.display(description="lasted")
    def lasted(self, task: Task) -> str:
        """Say how long the task took, or has been under way."""
        end = task.status_at if task.state in TERMINAL else timezone.now()
        words = duration(end - task.created_at)
        return words if task.state in TERMINAL else f"{words} so far"

    # -- the page

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the header by the stock form, everything else by slices."""
        context.update(self._slices(request, context["original"]))
        return super().render_change_form(request, context, *args, **kwargs)

    def _slices(self, request: HttpRequest, task: Task) -> dict[str, Any]:
        may_view_runs = may_view(request, Run)
        window = timeline.Window.at(request.GET.get("from", ""), task.last_event)
        return {
            "window": window,
            "begins": log.beginning(task.pk) or 1,
            "entries": list(timeline.folded(timeline.entries(task.pk, window))),
            "artifacts": timeline.artifacts(task.pk),
            "may_view_runs": may_view_runs,
            "runs": timeline.runs(task.pk) if may_view_runs else [],
            "steps": timeline.steps(task.pk) if may_view_runs else [],
            "files": timeline.files(task.pk),
            "notes": timeline.notes(task.pk),
            "beside": beside.of(request, task.pk),
            "rows_shown": timeline.ROWS,
            "may_cancel": task.state not in TERMINAL and self.has_cancel_permission(request),
        }

    # -- cancelling

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may cancel: those who were given `change task`, which means nothing else here."""
        return request.user.has_perm("a2a_tasks.change_task")

    @admin.action(description="Cancel selected tasks", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        """Cancel those selected tasks that have not ended, the newest first, and tell what became of them."""
        running = list(queryset.filter(state__in=CANCELLABLE).order_by("-pk")[: AT_ONCE + 1])
        ended = bounded_count(queryset.filter(state__in=sorted(TERMINAL)).order_by("-pk"))
        outcome = self._cancel(request, running[:AT_ONCE])
        self._tell(request, outcome, ended)
        if len(running) > AT_ONCE:
            note = f"Only {AT_ONCE} tasks are cancelled at once; more of the selected ones have not ended."
            self.message_user(request, note, messages.WARNING)

    @method_decorator(require_POST)
    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Cancel the task whose page has the button."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        self._tell(request, self._cancel(request, [task]), 0)
        return HttpResponseRedirect(reverse("admin:a2a_tasks_task_change", args=[task.pk]))

    def _cancel(self, request: HttpRequest, tasks: list[Task]) -> Outcome:
        def record(task: Task) -> None:
            self.log_change(request, task, "Cancelled.")

        return cancel(tasks, by=request.user.get_username(), record=record)

    def _tell(self, request: HttpRequest, outcome: Outcome, ended: int) -> None:
        if outcome.cancelled:
            self.message_user(request, f"Cancelled: {outcome.cancelled}.", messages.SUCCESS)
        if ended or outcome.ended:
            counted = ended if isinstance(ended, AtLeast) else ended + outcome.ended
            self.message_user(request, f"Already ended: {counted}.", messages.WARNING)
        if outcome.gone:
            self.message_user(request, f"No longer there: {outcome.gone}.", messages.WARNING)
        if outcome.untried:
            note = f"The database could not be reached. Not cancelled: {outcome.untried}."
            self.message_user(request, note, messages.ERROR)

    # -- files

    def file_view(
        self, request: HttpRequest, object_id: str, file_id: uuid.UUID
    ) -> HttpResponseBase:
        """Send a file of the task to those who may see the task: to be saved, whatever it is."""
        task = self.get_object(request, object_id)
        if not self.has_view_permission(request, task):
            raise Http404
        file = get_object_or_404(StoredFile, pk=file_id, task=task)
        try:
            content = storages[STORAGE].open(file.name)
        except FileNotFoundError:
            raise Http404 from None
        sent = FileResponse(content, as_attachment=True, filename=file.filename or "file")
        sent.headers["Content-Type"] = "application/octet-stream"
        sent.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        return sent

    def get_urls(self) -> list[URLPattern]:
        """Put the button's address and the files' before the stock ones, whose last one takes every path."""
        cancel_view = self.admin_site.admin_view(self.cancel_view)
        file_view = self.admin_site.admin_view(self.file_view)
        return [
            path("<int:object_id>/cancel/", cancel_view, name="a2a_tasks_task_cancel"),
            path("<int:object_id>/files/<uuid:file_id>/", file_view, name="a2a_tasks_task_file"),
            *super().get_urls(),
        ]
