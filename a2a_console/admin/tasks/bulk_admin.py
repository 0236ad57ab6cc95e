"""Bulk jobs in the admin: the progress of each, its results, and the button that stops it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_console.admin.widgets.columns import ago, column
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, badge
from a2a_console.admin.widgets.staff import may_view
from a2a_console.bulk import jobs
from a2a_console.bulk.actions import ACTIONS
from a2a_console.bulk.export import stream_texts
from a2a_console.site import page_url, site
from a2a_console.staff import sees_all
from a2a_tasks.models import BulkJob, BulkResult, Task

__all__ = ["BulkJobAdmin"]

#: Failures that the page of a job shows.
SHOWN = 20


@admin.register(BulkJob, site=site)
class BulkJobAdmin(ReadOnlyAdmin[BulkJob]):
    """The list and the page of jobs. Users who do not see all tenants see their own."""

    list_display = ("title", "state_badge", "progress", "by", "created")
    list_select_related = ("user",)
    fields = ("state_badge", "by", "created", "ended")
    own_views = ("<int:object_id>/progress/", "<int:object_id>/stop/", "<int:object_id>/results/")
    change_form_template = "admin/a2a_tasks/bulkjob/page.html"
    actions = None
    title = column("action", lambda job: f"{_verb(job)} #{job.pk}")
    state_badge = column("state", lambda job: badge(job.state))
    progress = column("tasks", lambda job: _describe(job))
    by = column("by", lambda job: job.user.get_username())
    created = column("created", lambda job: ago(job.created_at))
    ended = column("ended", lambda job: ago(job.ended_at))

    def get_queryset(self, request: HttpRequest) -> QuerySet[BulkJob]:
        """Return the jobs that the user sees."""
        rows = BulkJob.objects.select_related("user")
        return rows if sees_all(request.user) else rows.filter(user=request.user.pk)

    def has_view_permission(self, request: HttpRequest, obj: BulkJob | None = None) -> bool:
        """Allow users who may view tasks."""
        return may_view(request, Task)

    has_module_permission = has_view_permission

    def read_page(self, request: HttpRequest, row: BulkJob) -> dict[str, Any]:
        """Show how far the job is."""
        return {"title": self.title(row), "subtitle": None, **_read(row)}

    @method_decorator(never_cache)
    def progress_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the progress as it is now; with `?toast` in one line, for other pages."""
        job = self._get_visible(request, object_id)
        form = "toast" if "toast" in request.GET else "progress"
        shown = {"original": job, "title": self.title(job), **_read(job)}
        return render(request, f"admin/a2a_tasks/bulkjob/{form}.html", shown)

    @method_decorator(require_POST)
    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Stop the job after its slice. Only a user who may begin such a job may; an unknown one, who may begin any."""
        job = self._get_visible(request, object_id)
        actions = [ACTIONS[job.action]] if job.action in ACTIONS else ACTIONS.values()
        if not all(request.user.has_perm(action.permission) for action in actions):
            return HttpResponse(status=403)
        text = "The job stops." if jobs.stop(job) else "The job has already ended."
        self.message_user(request, text)
        return HttpResponseRedirect(page_url("a2a_tasks_bulkjob_change", job.pk))

    def results_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Stream the outcome of each task as CSV."""
        job = self._get_visible(request, object_id)
        return stream_texts(f"job-{job.pk}.csv", jobs.list_results(job))

    def _get_visible(self, request: HttpRequest, object_id: str) -> BulkJob:
        """Return the job. Raises Http404 if the user may not see it."""
        job = self.get_object(request, object_id)
        if not self.has_view_permission(request):
            raise Http404
        return job


def _verb(job: BulkJob) -> str:
    return ACTIONS[job.action].verb if job.action in ACTIONS else job.action


def _describe(job: BulkJob) -> str:
    return f"{job.done + job.failed:,} of {job.found:,}{'+' if job.more else ''}"


def _read(job: BulkJob) -> dict[str, Any]:
    failed = (
        BulkResult.objects.filter(job=job, ok=False).order_by("pk")[:SHOWN] if job.failed else ()
    )
    is_open = job.state in jobs.OPEN
    return {
        "is_open": is_open,
        "obstacle": jobs.find_obstacle(job) if is_open else "",
        "tried": job.done + job.failed,
        "most": max(job.found, job.done + job.failed),
        "described": _describe(job),
        "failures": failed,
        "list_url": f"{page_url('a2a_tasks_task_changelist')}?{job.query}",
    }
