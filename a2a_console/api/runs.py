"""Runs in the API: worker, lease, log lines and error of each."""

from __future__ import annotations

import logging
from typing import Any

from django.db.models import QuerySet, TextField, Value
from django.db.models.functions import NullIf
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import (
    CreatedQuerySerializer,
    NumberPagination,
    NumberQuerySerializer,
    agent_field,
)
from a2a_console.api.schema import extend_schema
from a2a_console.api.viewsets import HostViewSet
from a2a_console.excerpts import LIMIT, select_end
from a2a_console.staff import may_see_traces
from a2a_console.times import MomentField
from a2a_tasks.models import Run, RunLine, RunStatus
from a2a_tasks.store import run_lines
from a2a_tasks.store.workers import without_long_columns

__all__ = ["TO_VIEW_RUNS", "RunLineSerializer", "RunViewSet", "select_runs"]

TO_VIEW_RUNS = RequiredRight.to_view("a2a_tasks.run", of_agents=True)


class RunLineSerializer(serializers.Serializer[Any]):
    """A run in a list."""

    key = serializers.IntegerField(source="pk")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    agent = serializers.CharField(source="task.agent")
    status = serializers.ChoiceField(RunStatus.values)
    attempt = serializers.IntegerField(help_text="Number of attempts so far.")
    input_number = serializers.IntegerField(help_text="Number of the answered message's event.")
    queue = serializers.CharField()
    worker = serializers.CharField(help_text="Name of the current or last worker.")
    lease_until = MomentField(
        allow_null=True, help_text="End of the lease. Until then no other process takes the run."
    )
    lease_seconds = serializers.FloatField()
    due_at = MomentField(help_text="Time before which the run does not start.")
    parked = serializers.BooleanField(
        source="is_parked", help_text="True: the run is queued, waits in a step and holds no slot."
    )
    created_at = MomentField()
    started_at = MomentField(allow_null=True, help_text="Time of the run's last claim.")
    ended_at = MomentField(allow_null=True)


class RunSerializer(RunLineSerializer):
    """A run, with how its attempts died, and the trace if it failed."""

    error = serializers.CharField(
        source="shown_error",
        allow_null=True,
        help_text=f"The last {LIMIT} characters of how its attempts died, and of the trace if it failed; null if there is "
        "nothing, and for operators of a tenant, since it tells of the host's inside.",
    )


class RunQuerySerializer(CreatedQuerySerializer):
    """The filters of runs."""

    status = serializers.ListField(
        child=serializers.ChoiceField(RunStatus.values),
        required=False,
        max_length=len(RunStatus.values),
        help_text="One of these statuses.",
    )
    agent = agent_field()
    queue = serializers.CharField(required=False, max_length=64)
    worker = serializers.CharField(required=False, max_length=128)


class LoggedSerializer(serializers.Serializer[RunLine]):
    """A log line of a run."""

    number = serializers.IntegerField(
        help_text="Number of the line in the run, over all its attempts."
    )
    attempt = serializers.IntegerField(help_text="Number of the attempt that logged the line.")
    at = MomentField()
    level = serializers.SerializerMethodField()
    logger = serializers.CharField()
    text = serializers.CharField(help_text="The line; credentials are removed.")

    def get_level(self, line: RunLine) -> str:
        """The name of the level in Python's logging: `INFO`."""
        return logging.getLevelName(line.level)


def select_runs() -> QuerySet[Run]:
    """Return all runs without long columns and credentials."""
    return without_long_columns(Run.objects.all())


class RunViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[Run]):
    """Runs, newest first."""

    queryset = select_runs()
    serializer_class = RunLineSerializer
    serializer_classes = {"retrieve": RunSerializer}
    required_right = TO_VIEW_RUNS
    visible_by = "task__"
    request_serializer_classes = {"list": RunQuerySerializer}
    filter_lookups = {
        "status": "status__in",
        "agent": "task__agent",
        "queue": "queue",
        "worker": "worker",
    }

    def get_queryset(self) -> QuerySet[Run]:
        """Return the runs. For a single run this includes the error, if the operator may see it."""
        rows = super().get_queryset()
        if self.action != "retrieve":
            return rows
        error: Any = Value(None, TextField())
        if may_see_traces(self.operator.tenants):
            error = NullIf(select_end("error"), Value("", TextField()))
        return rows.annotate(shown_error=error)

    @extend_schema(operation_id="list_run_lines", responses=LoggedSerializer(many=True))
    @action(
        detail=True,
        serializer_class=LoggedSerializer,
        request_serializer_class=NumberQuerySerializer,
        pagination_class=NumberPagination,
    )
    def lines(self, request: Request, key: int) -> Response:
        """List the log lines of a run, in order. Operators of a tenant get none: they reveal the host's internals."""
        self.get_object()
        shown = may_see_traces(self.operator.tenants)
        rows: Any = run_lines.of_run(key) if shown else RunLine.objects.none()
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
