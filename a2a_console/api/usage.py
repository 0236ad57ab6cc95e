"""Sums of the usage ledger in the API."""

from __future__ import annotations

import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import InvalidQuery
from a2a_console.api.operators import RequiredRight, filter_visible
from a2a_console.api.pagination import agent_field, moment_field, tenant_field
from a2a_console.api.schema import extend_schema
from a2a_console.api.viewsets import HostViewSet
from a2a_console.statistics.counts import TooMany
from a2a_console.times import MomentField
from a2a_console.usage.sums import GROUPS, SPAN, UsageFilter, sum_usage

__all__ = ["UsageViewSet"]

#: The number of lines: default and maximum.
LINES, MAX_LINES = 100, 1000
#: A moment that has a span before it.
EARLIEST = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class UsageQuerySerializer(serializers.Serializer[Any]):
    """The reports that are summed, and the groups."""

    by = serializers.ChoiceField(list(GROUPS), default="day", help_text="Grouping of the sums.")
    since = moment_field(f"Reported since this time; default: {SPAN.days} days before `until`.")
    until = moment_field("Reported before this time; default: now.")
    agent = agent_field()
    tenant = tenant_field()
    caller = serializers.CharField(required=False, max_length=256, help_text="The principal.")
    model = serializers.CharField(required=False, max_length=200)
    # DRF takes fields off the class
    context = serializers.CharField(  # type: ignore[assignment]
        required=False, max_length=256, help_text="The id of a context."
    )
    task = serializers.CharField(required=False, max_length=256, help_text="The id of a task.")
    limit = serializers.IntegerField(default=LINES, min_value=1, max_value=MAX_LINES)


class UsageLineSerializer(serializers.Serializer[Any]):
    """The sums of one group, as far as their costs are in one currency, or unknown."""

    day = serializers.DateField(source="key.day", allow_null=True, help_text="The day, in UTC.")
    agent = serializers.CharField(source="key.agent", allow_null=True)
    model = serializers.CharField(source="key.model", allow_null=True)
    tenant = serializers.CharField(source="key.tenant", allow_null=True)
    caller = serializers.CharField(source="key.caller", allow_null=True)
    context = serializers.CharField(source="key.context_id", allow_null=True)  # type: ignore[assignment] # as above
    task = serializers.CharField(source="key.task_id", allow_null=True)
    owner = serializers.CharField(
        source="key.owner", allow_null=True, help_text="Owner of the task or the context."
    )
    requests = serializers.IntegerField()
    input_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Input tokens that were read from a cache.")
    cache_write_tokens = serializers.IntegerField(
        help_text="Input tokens that were written to a cache."
    )
    cost = serializers.CharField(
        source="exact_cost",
        allow_null=True,
        help_text="Exact decimal number, as a text. Null: the cost is unknown.",
    )
    currency = serializers.CharField(
        help_text="Three letters (ISO 4217). Empty: the cost is unknown."
    )


@extend_schema_serializer(many=False)
class UsageSerializer(serializers.Serializer[Any]):
    """Sums of usage. A group has a line for each currency, and one for reports whose cost is unknown."""

    since = MomentField()
    until = MomentField()
    complete = serializers.BooleanField(
        help_text="False: there are too many reports to be summed in time; the sums are missing."
    )
    more = serializers.BooleanField(help_text="True: there are more lines than `limit`.")
    totals = UsageLineSerializer(many=True, help_text="Sums of all reports, whatever `limit` is.")
    lines = UsageLineSerializer(
        many=True,
        help_text="The sums by day in order; by other properties those of most tokens first. Members that are no columns of the group are null.",
    )


class UsageViewSet(HostViewSet[Any]):
    """Usage of models."""

    serializer_class = UsageSerializer
    pagination_class = None
    required_right = RequiredRight.to_view("a2a_tasks.task", of_agents=True)
    request_serializer_classes = {"list": UsageQuerySerializer}

    @extend_schema(operation_id="get_usage")
    def list(self, request: Request) -> Response:
        """Show sums of the usage of models, as agents have reported it, by task, context, caller, tenant, agent, model or day."""
        query, operator = self.given, self.operator
        until = query.get("until") or timezone.now()
        since = query.get("since") or max(until, EARLIEST) - SPAN
        if since >= until:
            raise InvalidQuery({"since": ["This is not before `until`."]})
        columns = {"context": "context_id", "task": "task_id"}
        names = ("agent", "tenant", "caller", "model", "context", "task")
        equal = {columns.get(name, name): query[name] for name in names if name in query}
        wanted = UsageFilter(since=since, until=until, equal=equal)
        try:
            sums = sum_usage(
                query["by"],
                wanted,
                lambda rows, by: filter_visible(operator, rows, by=by),
                limit=query["limit"],
            )
        except TooMany:
            sums = None
        found = {
            "since": since,
            "until": until,
            "complete": sums is not None,
            "more": sums is not None and sums.more,
            "totals": sums.totals if sums else [],
            "lines": sums.lines if sums else [],
        }
        return Response(self.get_serializer(found).data)
