"""Figures: how the host does."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Operator, Right, operator_of, there_for
from a2a_tasks.operations.figures import PERIODS, Report, report
from a2a_tasks.store.figures import Beside

__all__ = ["FiguresNow"]

TO_VIEW = Right.to_view("a2a_tasks.task", of_agents=True)


class FiguresQuery(serializers.Serializer[Any]):
    """Of which period."""

    period = serializers.ChoiceField(list(PERIODS), default="hour")


class NumberSerializer(serializers.Serializer[Any]):
    """A figure."""

    name = serializers.CharField()
    label = serializers.CharField(help_text="The same for people.")  # type: ignore[assignment] # DRF takes fields off the class
    value = serializers.FloatField(
        allow_null=True, help_text="Null: there is nothing to make it of."
    )
    unit = serializers.ChoiceField(["", "s", "%"], help_text="Empty: a count; s: seconds.")


class SeriesSerializer(serializers.Serializer[Any]):
    """A number for each slot of the period."""

    label = serializers.CharField()  # type: ignore[assignment] # as above
    values = serializers.ListField(child=serializers.FloatField(allow_null=True))


class LineSerializer(serializers.Serializer[Any]):
    """What ended in the period, and what is under way, of an agent or a tenant."""

    name = serializers.CharField()
    ended = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Those of them that failed or were rejected.")
    p50 = serializers.FloatField(allow_null=True, help_text="Seconds; null of tenants.")
    p95 = serializers.FloatField(allow_null=True)
    running = serializers.IntegerField(help_text="Runs under way now.")
    queued = serializers.IntegerField(help_text="Runs that wait now.")


class QueueSerializer(serializers.Serializer[Any]):
    """A queue now."""

    name = serializers.CharField()
    running = serializers.IntegerField()
    queued = serializers.IntegerField()
    oldest_due = serializers.DateTimeField(allow_null=True)


class BesideSerializer(serializers.Serializer[Any]):
    """Figures of something beside the tasks."""

    name = serializers.CharField()
    numbers = NumberSerializer(many=True)
    series = SeriesSerializer(many=True)


class FiguresSerializer(serializers.Serializer[Any]):
    """How the host does."""

    period = serializers.ChoiceField(list(PERIODS))
    since = serializers.DateTimeField(help_text="When the first slot begins.")
    slot_seconds = serializers.FloatField(
        help_text="How long each slot is; the last has not ended."
    )
    numbers = NumberSerializer(many=True)
    ended = SeriesSerializer(many=True, help_text="How many tasks ended how, slot by slot.")
    seconds = SeriesSerializer(many=True, help_text="From a task's beginning to its end.")
    queues = QueueSerializer(many=True)
    agents = LineSerializer(many=True, help_text="The 20 of which most ended.")
    tenants = LineSerializer(many=True, help_text="The 20 of which most ended.")
    beside = BesideSerializer(many=True)


class FiguresNow(View):
    """Figures."""

    @action("get_figures", TO_VIEW, FiguresSerializer, query=FiguresQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """Tell how the host does: what is under way, what ended in a period, how long it took.

        Counts of what is unfinished stop at 10,000. Percentiles are good to some six per cent.
        """
        operator = operator_of(request)
        found = report(
            PERIODS[asked["period"]],
            partial(_narrow, operator),
            whose=(operator.tenants, operator.agents),
            of_host=operator.sees_all,
        )
        return Response(FiguresSerializer(_told(found, operator)).data)


def _narrow(operator: Operator, rows: QuerySet[Any], by: str) -> QuerySet[Any]:
    return there_for(operator, rows, by=by)


def _told(found: Report, operator: Operator) -> dict[str, Any]:
    """The report as the operator is told it."""
    return {
        "period": found.period.name,
        "since": found.ended.since,
        "slot_seconds": found.period.step.total_seconds(),
        "numbers": found.numbers,
        "ended": found.series,
        "seconds": found.took,
        "queues": found.now.queues,
        "agents": found.agents,
        "tenants": found.tenants,
        "beside": [one for one in found.beside if _may_view(operator, one)],
    }


def _may_view(operator: Operator, beside: Beside) -> bool:
    app, _, name = beside.model.partition(".")
    person = operator.person
    return person is None or any(
        person.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change")
    )
