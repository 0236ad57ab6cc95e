"""The log lines of a run: what its agent told the log while it worked."""

from __future__ import annotations

import logging
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import operator_of, there_for
from a2a_tasks.api.paging import MOST, SIZE
from a2a_tasks.api.problems import NotFound
from a2a_tasks.api.runs import TO_VIEW
from a2a_tasks.models import Run, RunLine
from a2a_tasks.store import run_lines

__all__ = ["RunLines"]


class LoggedSerializer(serializers.ModelSerializer[RunLine]):
    """A line."""

    number = serializers.IntegerField(help_text="Counts the run's lines, through all its attempts.")
    attempt = serializers.IntegerField(help_text="The attempt that said it.")
    at = serializers.DateTimeField()
    level = serializers.SerializerMethodField()
    logger = serializers.CharField()
    text = serializers.CharField(help_text="Credentials are taken out.")

    class Meta:
        model = RunLine
        fields = ("number", "attempt", "at", "level", "logger", "text")

    def get_level(self, line: RunLine) -> str:
        """As Python's logging calls it: `INFO`."""
        return logging.getLevelName(line.level)


class LinesSerializer(serializers.Serializer[Any]):
    """Lines in their order."""

    items = LoggedSerializer(many=True)
    next = serializers.IntegerField(
        allow_null=True, help_text="`after` of what follows; null at the end."
    )


class LineQuery(serializers.Serializer[Any]):
    """Which lines."""

    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Lines with a higher number.",
    )
    size = serializers.IntegerField(required=False, default=SIZE, min_value=1, max_value=MOST)


class RunLines(View):
    """The lines of a run."""

    @action("list_run_lines", TO_VIEW, LinesSerializer, query=LineQuery, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """List what the agent told the log, in order. Operators of a tenant get none: it tells of the host's inside."""
        operator = operator_of(request)
        if not there_for(operator, Run.objects.filter(pk=key), by="task__").exists():
            raise NotFound
        rows = (
            RunLine.objects.none()
            if operator.tenant
            else run_lines.of_run(key, after=asked["after"])
        )
        found = list(rows[: asked["size"] + 1])
        items = found[: asked["size"]]
        more = len(found) > len(items)
        return Response(
            LinesSerializer({"items": items, "next": items[-1].number if more else None}).data
        )
