"""Runs in the admin: process, lease, log and error of each."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator

from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.filters import CreatedFilter, RunStatusFilter
from a2a_console.admin.widgets.formatting import FormattedBody, format_body
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.excerpts import select_end, select_start, size
from a2a_console.site import page_url, site
from a2a_console.staff import may_see_traces, tenants_of, within
from a2a_console.times import duration, moment
from a2a_tasks.models import Run, Task
from a2a_tasks.store import run_lines
from a2a_tasks.store.workers import without_long_columns

__all__ = ["RunAdmin"]

#: The largest number of tasks with one id (of different owners) that a search follows.
TASKS = 100
#: The largest number of log lines on the page of a run: the last ones.
LINES = 500


@admin.register(Run, site=site)
class RunAdmin(ReadOnlyAdmin[Run]):
    """The list and the page of runs."""

    list_display = (
        *("number", "status_badge", "task_link", "attempt"),
        *("queue", "worker", "created", "lasted"),
    )
    list_filter = (RunStatusFilter, CreatedFilter)
    list_select_related = ("task",)
    search_fields = ("task__public_id",)
    search_help_text = "A task id, complete."
    fields = (
        *("status_badge", "lasted", "created", "due", "parked", "started", "ended"),
        *("task_link", "input_number", "attempt", "queue", "worker", "lease"),
    )
    follows = True
    change_form_template = "admin/a2a_tasks/run/page.html"
    tenant_lookup = "task__tenant"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Return the runs without long columns, and without the token, which is a credential."""
        return without_long_columns(super().get_queryset(request))

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by the exact id of the task, which is read first, in its own query."""
        tasks = within(Task.objects.filter(public_id=wanted), request.user)
        return rows.filter(task_id__in=list(tasks.values_list("pk", flat=True)[:TASKS]))

    def read_page(self, request: HttpRequest, row: Run) -> dict[str, Any]:
        """Show the log, the trace and the request below the fields, each cut by the database."""
        rows = Run.objects.filter(pk=row.pk).values_list(
            select_end("error"), size("error"), select_start("request"), size("request")
        )
        error, error_size, message, message_size = rows[0]
        traced = may_see_traces(tenants_of(request.user))
        return {
            "trace": FormattedBody(text=error, size=error_size) if error and traced else None,
            "request_body": format_body(message, message_size),
            **(_lines(row) if traced else {}),
        }

    number = column("run", lambda row: str(row.pk))
    status_badge = column("status", lambda row: badge(row.standing))
    parked = column("parked in", lambda row: row.parked_in if row.is_parked else "")
    lease = column(
        "lease", lambda row: f"until {moment(row.lease_until)}" if row.lease_until else "not held"
    )
    due = column("due", lambda row: moment(row.due_at))
    created = column("created", lambda row: moment(row.created_at))
    started = column("started", lambda row: moment(row.started_at))
    ended = column("ended", lambda row: moment(row.ended_at))

    @admin.display(description="task")
    def task_link(self, run: Run) -> str:
        """Link to the task."""
        url = page_url("a2a_tasks_task_change", run.task_id)
        label = Truncator(run.task.public_id).chars(40)
        return format_html('<a class="a2a-id" href="{}">{}</a>', url, label)

    @admin.display(description="duration")
    def lasted(self, run: Run) -> str:
        """Show how long the run took, or has taken so far."""
        if run.started_at is None:
            return "not started"
        words = duration((run.ended_at or timezone.now()) - run.started_at)
        return words if run.ended_at else f"{words} so far"


def _lines(run: Run) -> dict[str, Any]:
    """Return the last log lines of the run, each with the name of its level, and the number of lines before them."""
    last = list(run_lines.of_run(run.pk).reverse()[:LINES])
    lines = [
        (row, logging.getLevelName(row.level).lower(), moment(row.at)) for row in reversed(last)
    ]
    return {"lines": lines, "lines_before": last[-1].number - 1 if last else 0}
