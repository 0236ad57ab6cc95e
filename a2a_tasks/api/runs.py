"""Runs: which process answers what, under which lease, and why it failed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin.shown import LIMIT, ending
from a2a_tasks.admin.staff import may_see_traces
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, PageQuery, page, page_of
from a2a_tasks.api.problems import NotFound
from a2a_tasks.models import Run, RunStatus, Task

__all__ = ["RunList", "RunOne", "RunLineSerializer", "TaskRuns", "of_task"]

TO_VIEW = Right.to_view("a2a_tasks.run", of_agents=True)


class RunLineSerializer(serializers.ModelSerializer[Run]):
    """A run, in a line."""

    key = serializers.IntegerField(source="pk")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    agent = serializers.CharField(source="task.agent")
    status = serializers.ChoiceField(RunStatus.values)
    attempt = serializers.IntegerField(help_text="How often it was started.")
    input_number = serializers.IntegerField(help_text="The event with the message it answers.")
    worker = serializers.CharField(help_text="The process that has it, or had it last.")
    lease_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then nobody else takes it, while it is running."
    )
    lease_seconds = serializers.FloatField()
    due_at = serializers.DateTimeField(help_text="Not to be started before.")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="When it was claimed last.")
    ended_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            *("key", "task", "task_key", "agent", "status", "attempt", "input_number", "queue"),
            *("worker", "lease_until", "lease_seconds", "due_at"),
            *("created_at", "started_at", "ended_at"),
        )


class RunSerializer(RunLineSerializer):
    """A run with what went wrong."""

    error = serializers.CharField(
        allow_null=True,
        help_text=f"The last {LIMIT} characters of how its attempts died, and of the trace if it failed; null if there is "
        "nothing, and for operators of a tenant, since it tells of the host's inside.",
    )

    class Meta(RunLineSerializer.Meta):
        fields = (*RunLineSerializer.Meta.fields, "error")


class RunQuery(CreatedQuery):
    """Which runs."""

    status = serializers.ListField(
        child=serializers.ChoiceField(RunStatus.values),
        required=False,
        max_length=len(RunStatus.values),
        help_text="Any of these.",
    )
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    queue = serializers.CharField(required=False, max_length=64)
    worker = serializers.CharField(required=False, max_length=128)


COLUMNS = {"status": "status__in", "agent": "task__agent", "queue": "queue", "worker": "worker"}


class RunList(View):
    """Runs."""

    @action("list_runs", TO_VIEW, page_of(RunLineSerializer), query=RunQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List runs, newest first."""
        wanted = {column: asked[name] for name, column in COLUMNS.items() if name in asked}
        rows = _rows(request).filter(**wanted)
        return Response(page_of(RunLineSerializer)(page(rows, asked)).data)


class RunOne(View):
    """One run."""

    @action("get_run", TO_VIEW, RunSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a run, with how its attempts died, and the trace if it failed."""
        run = _rows(request).filter(pk=key).first()
        if run is None:
            raise NotFound
        return Response({**RunLineSerializer(run).data, "error": _trace(request, run)})


class TaskRuns(View):
    """The runs of a task."""

    @action("list_task_runs", TO_VIEW, page_of(RunLineSerializer), query=PageQuery, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """List the runs of a task, newest first."""
        if not there_for(operator_of(request), Task.objects.filter(pk=key)).exists():
            raise NotFound
        return Response(page_of(RunLineSerializer)(page(of_task(key), asked, indexed=True)).data)


def of_task(task: int) -> QuerySet[Run]:
    """The runs of a task, newest first, without what is long or a key."""
    return _light(Run.objects.filter(task_id=task)).order_by("-pk")


def _rows(request: Request) -> QuerySet[Run]:
    return there_for(operator_of(request), _light(Run.objects.all()), by="task__")


def _light(rows: QuerySet[Run]) -> QuerySet[Run]:
    unread = ("status_message", "metadata", "memory", "run_token")
    return rows.select_related("task").defer(
        *("error", "request", "token"), *(f"task__{name}" for name in unread)
    )


def _trace(request: Request, run: Run) -> str | None:
    if not may_see_traces(operator_of(request).tenants):
        return None
    found: Any = Run.objects.filter(pk=run.pk).values_list(ending("error"), flat=True).first()
    return found or None
