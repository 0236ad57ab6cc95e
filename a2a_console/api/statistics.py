"""Statistics of the host in the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import RequiredRight, filter_visible
from a2a_console.api.schema import extend_schema
from a2a_console.api.viewsets import HostViewSet
from a2a_console.statistics.counts import PERIODS
from a2a_console.statistics.reports import TOP, report
from a2a_console.statistics.webhooks import DELIVERIES
from a2a_console.statistics.webhooks import TOP as RECEIVERS
from a2a_console.times import MomentField

__all__ = ["StatisticsViewSet"]

VIEW_DELIVERIES = RequiredRight.to_view(DELIVERIES).permissions


class StatisticsQuerySerializer(serializers.Serializer[Any]):
    """The period of the statistics."""

    period = serializers.ChoiceField(list(PERIODS), default="hour")


class NumberSerializer(serializers.Serializer[Any]):
    """A figure of the overview."""

    name = serializers.CharField()
    label = serializers.CharField(help_text="Name of the figure for people.")  # type: ignore[assignment] # DRF takes fields off the class
    value = serializers.FloatField(
        allow_null=True, help_text="The figure; null: nothing to measure, such as no queued run."
    )
    unit = serializers.ChoiceField(["", "s"], help_text="`s`: seconds; empty: a count.")


class SeriesSerializer(serializers.Serializer[Any]):
    """A number for each slot of the period."""

    label = serializers.CharField()  # type: ignore[assignment] # as above
    values = serializers.ListField(child=serializers.IntegerField())


@extend_schema_field(SeriesSerializer(many=True))
class SeriesField(serializers.ReadOnlyField):
    """The series of a chart, which are sequences by their labels."""

    def to_representation(self, value: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        """Return a member for each."""
        return [{"label": label, "values": values} for label, values in value.items()]


class LineSerializer(serializers.Serializer[Any]):
    """The tasks of an agent or a tenant that ended in the period, and its unfinished runs now."""

    name = serializers.CharField()
    ended = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Tasks that ended as `failed`.")
    running = serializers.IntegerField(help_text="Number of active runs.")
    queued = serializers.IntegerField(help_text="Number of queued runs.")


class QueueSerializer(serializers.Serializer[Any]):
    """A queue now."""

    name = serializers.CharField()
    running = serializers.IntegerField()
    queued = serializers.IntegerField()
    oldest_due = MomentField(allow_null=True)


class ReceiverStatisticsSerializer(serializers.Serializer[Any]):
    """Deliveries to a receiver: settled ones in the period, and pending ones now."""

    key = serializers.IntegerField(source="receiver.pk")
    tenant = serializers.CharField(source="receiver.tenant")
    address = serializers.CharField(source="receiver.address")
    delivered = serializers.IntegerField()
    dead = serializers.IntegerField()
    pending = serializers.IntegerField()


class WebhookStatisticsSerializer(serializers.Serializer[Any]):
    """The statistics of webhooks."""

    numbers = NumberSerializer(many=True)
    series = SeriesField(help_text="Number of deliveries by result, for each slot.")
    receivers = ReceiverStatisticsSerializer(
        many=True,
        help_text=f"The {RECEIVERS} receivers with most dead deliveries, then with most pending ones.",
    )


@extend_schema_serializer(many=False)
class StatisticsSerializer(serializers.Serializer[Any]):
    """The statistics of the host in a period."""

    period = serializers.ChoiceField(list(PERIODS), source="period.name")
    since = MomentField(help_text="Start of the first slot.")
    slot_seconds = serializers.FloatField(
        source="period.seconds", help_text="Length of each slot; the last has not ended."
    )
    complete = serializers.BooleanField(
        help_text="False: too much ended in the period to be counted in time; some statistics are missing."
    )
    numbers = NumberSerializer(many=True)
    ended = SeriesField(source="series", help_text="Number of tasks by final state, for each slot.")
    queues = QueueSerializer(many=True)
    agents = LineSerializer(many=True, help_text=f"The {TOP} agents of which most tasks ended.")
    tenants = LineSerializer(many=True, help_text=f"The {TOP} tenants of which most tasks ended.")
    webhooks = WebhookStatisticsSerializer(
        allow_null=True,
        help_text="Statistics of webhooks; null = there are too many deliveries to count, or you lack the permission to view them.",
    )


class StatisticsViewSet(HostViewSet[Any]):
    """Statistics."""

    serializer_class = StatisticsSerializer
    pagination_class = None
    required_right = RequiredRight.to_view("a2a_tasks.task", of_agents=True)
    request_serializer_classes = {"list": StatisticsQuerySerializer}

    @extend_schema(operation_id="get_statistics")
    def list(self, request: Request) -> Response:
        """Show the statistics of the host: unfinished work, the tasks that ended in a period, and webhooks.

        Counts of unfinished runs, waiting tasks and pending deliveries stop at 10,000.
        """
        operator = self.operator
        found = report(
            PERIODS[self.given["period"]],
            lambda rows, by: filter_visible(operator, rows, by=by),
            whose=(operator.tenants, operator.agents),
            of_host=operator.sees_all,
        )
        if operator.person and not any(map(operator.person.has_perm, VIEW_DELIVERIES)):
            found = replace(found, webhooks=None)
        return Response(self.get_serializer(found).data)
