"""Runs: which process answers what, under which lease, and why it failed."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator

from a2a_tasks.admin.filters import CreatedFilter, RunStatusFilter
from a2a_tasks.admin.read_only import ReadOnlyAdmin, badge
from a2a_tasks.admin.shown import Shown, beginning, duration, ending, moment, shown, size
from a2a_tasks.admin.staff import may_see_traces, tenants_of, within
from a2a_tasks.models import Run, Task
from a2a_tasks.store import run_lines

__all__ = ["RunAdmin"]

#: Tasks of one id (of different owners), and runs of each, that a search follows.
TASKS = 100
#: Lines of its log on the page of a run, the last ones.
LINES = 500


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin[Run]):
    """The list and the page of runs."""

    list_display = (
        "number",
        "status_badge",
        "task_link",
        "attempt",
        "queue",
        "worker",
        "created",
        "lasted",
    )
    list_filter = (RunStatusFilter, CreatedFilter)
    list_select_related = ("task",)
    search_fields = ("task__public_id",)
    search_help_text = "A task id, complete."
    fields = (
        *("status_badge", "lasted", "created", "due", "started", "ended"),
        *("task_link", "input_number", "attempt", "queue", "worker", "lease"),
    )
    change_form_template = "admin/a2a_tasks/run/page.html"
    tenant_lookup = "task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave out what is long, and the token, which is a key."""
        rows = super().get_queryset(request).select_related("task")
        return rows.defer(
            "error",
            "request",
            "token",
            "task__status_message",
            "task__metadata",
            "task__memory",
            "task__run_token",
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        """Find by the exact id of the task, which comes first in a query of its own."""
        wanted = search_term.strip()
        if not wanted:
            return queryset, False
        tasks = within(Task.objects.filter(public_id=wanted), request.user).values_list(
            "pk", flat=True
        )
        return queryset.filter(task_id__in=list(tasks[:TASKS])), False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the log, the trace and the request below the fields, each cut by the database."""
        rows = Run.objects.filter(pk=context["original"].pk).values_list(
            ending("error"), size("error"), beginning("request"), size("request")
        )
        error, error_size, asked, asked_size = rows[0]
        traced = may_see_traces(tenants_of(request.user))
        context.update(
            trace=Shown(text=error, size=error_size) if error and traced else None,
            request_body=shown(asked, asked_size),
            **_lines(context["original"]),
        )
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description="run")
    def number(self, run: Run) -> str:
        """Show the key."""
        return str(run.pk)

    @admin.display(description="status")
    def status_badge(self, run: Run) -> str:
        """Show the status as a word."""
        return badge(run.status)

    @admin.display(description="task")
    def task_link(self, run: Run) -> str:
        """Link to the task."""
        url = reverse("admin:a2a_tasks_task_change", args=[run.task_id])
        label = Truncator(run.task.public_id).chars(40)
        return format_html('<a class="a2a-id" href="{}">{}</a>', url, label)

    @admin.display(description="lasted")
    def lasted(self, run: Run) -> str:
        """Say how long it ran, or runs, or waits."""
        if run.started_at is None:
            return "not started"
        words = duration((run.ended_at or timezone.now()) - run.started_at)
        return words if run.ended_at else f"{words} so far"

    @admin.display(description="lease")
    def lease(self, run: Run) -> str:
        """Say until when the run is held."""
        return f"until {moment(run.lease_until)}" if run.lease_until else "not held"

    @admin.display(description="due")
    def due(self, run: Run) -> str:
        """Show from when on it may start."""
        return moment(run.due_at)

    @admin.display(description="created")
    def created(self, run: Run) -> str:
        """Show the moment to the second."""
        return moment(run.created_at)

    @admin.display(description="started")
    def started(self, run: Run) -> str:
        """Show when it was claimed."""
        return moment(run.started_at)

    @admin.display(description="ended")
    def ended(self, run: Run) -> str:
        """Show when it ended."""
        return moment(run.ended_at)


def _lines(run: Run) -> dict[str, Any]:
    """The last lines of its log, each with the word of its level, and how many there are in all."""
    last = list(run_lines.of_run(run.pk).reverse()[:LINES])
    lines = [
        (row, logging.getLevelName(row.level).lower(), moment(row.at)) for row in reversed(last)
    ]
    return {"lines": lines, "lines_before": last[-1].number - 1 if last else 0}
