"""Bulk actions of the API: cancel many tasks, run them again (both with a dry run), and export them as a stream.

The actions and their bounds are those of the admin (`a2a_console/bulk`); the filters are those of the list.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.pagination import MAX_KEY, CursorField, sign_cursor
from a2a_console.api.schema import extend_schema
from a2a_console.api.tasks import (
    FILTERS,
    TO_CANCEL,
    TO_RUN_AGAIN,
    RunAgainBodySerializer,
    TaskFilterSerializer,
    TaskRowsViewSet,
    make_selection,
)
from a2a_console.bulk import actions as bulk
from a2a_console.bulk.actions import AT_ONCE, BulkAction, Plan
from a2a_console.bulk.export import stream_export
from a2a_console.search.task_record import STATES
from a2a_tasks.models import Task

__all__ = ["TaskBulkViewSet"]

EXPORT = OpenApiResponse(
    OpenApiTypes.STR,
    "All selected tasks, newest first, one per line, streamed: JSON objects, or CSV (RFC 4180) with a heading.",
)


class TaskChoiceSerializer(TaskFilterSerializer):
    """A selection of tasks by numbers, by filters of the list, or by both."""

    keys = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MAX_KEY),
        required=False,
        allow_empty=False,
        max_length=AT_ONCE,
        help_text="Numbers (`key`) of tasks.",
    )
    all = serializers.BooleanField(
        required=False, default=False, help_text="All tasks. Required if there is no filter."
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="True: only report the effect."
    )
    cursor = CursorField()


class TaskAgainChoiceSerializer(TaskChoiceSerializer, RunAgainBodySerializer):
    """A selection of tasks, with the idempotency key of the request."""


class TaskExportChoiceSerializer(TaskFilterSerializer):
    """The tasks of an export (all of them without a filter) and its format."""

    format = serializers.ChoiceField(["jsonl", "csv"], default="jsonl")


class PartSerializer(serializers.Serializer[Any]):
    """The number of tasks of one state and agent."""

    state = serializers.ChoiceField(STATES)
    agent = serializers.CharField()
    count = serializers.IntegerField()


class SelectedTasksSerializer(serializers.Serializer[Any]):
    """The tasks that the request selected."""

    found = serializers.IntegerField(
        help_text=f"Number of tasks that this request selects, at most {AT_ONCE:,}."
    )
    parts = PartSerializer(many=True, help_text="Number of selected tasks by state and agent.")
    keys = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The task numbers, newest first. Sent back as `keys`, they select exactly these.",
    )
    others = serializers.IntegerField(
        help_text="Number of `keys` whose state does not allow the action."
    )
    missing = serializers.IntegerField(
        help_text="Number of `keys` that do not exist, or that the filters exclude."
    )
    next = serializers.CharField(
        allow_null=True,
        help_text="Repeat the request with this as `cursor` to continue. Null = no more.",
    )


class CancelledSerializer(SelectedTasksSerializer):
    """The selected tasks and the result of the cancellation; a dry run cancels none."""

    cancelled = serializers.IntegerField()
    ended = serializers.IntegerField(help_text="Tasks that have ended in the meantime.")
    gone = serializers.IntegerField(help_text="Tasks that no longer exist.")
    untried = serializers.IntegerField(
        help_text="Tasks that were not tried because the database was away. Repeat the request."
    )


class NewTaskSerializer(serializers.Serializer[Any]):
    """A task and the new task that repeats it."""

    key = serializers.IntegerField(help_text="Number of the task that was run again.")
    new_key = serializers.IntegerField()
    new_id = serializers.CharField()
    before = serializers.BooleanField(
        help_text="True if an earlier request with this `nonce` created the new task."
    )


class RefusalSerializer(serializers.Serializer[Any]):
    """The reason why some tasks were not run again."""

    reason = serializers.CharField()
    count = serializers.IntegerField()


class RunAgainSerializer(SelectedTasksSerializer):
    """The selected tasks and the new ones; a dry run starts none."""

    again = NewTaskSerializer(many=True)
    refused = RefusalSerializer(many=True)
    gone = serializers.IntegerField(help_text="Tasks that no longer exist.")
    untried = serializers.IntegerField(
        help_text="Tasks that were not tried because the host was overloaded or the database away. Repeat the request with this `nonce`."
    )


class TaskBulkViewSet(TaskRowsViewSet):
    """Actions on many tasks."""

    @extend_schema(operation_id="cancel_tasks")
    @action(
        detail=False,
        methods=["post"],
        required_right=TO_CANCEL,
        serializer_class=CancelledSerializer,
        request_serializer_class=TaskChoiceSerializer,
    )
    def cancel(self, request: Request) -> Response:
        """Cancel the selected tasks that have not ended, newest first, at most a thousand per request.

        Each task is final at once, then its agent is stopped. With `dry_run` the answer only counts the tasks by state
        and agent. Continue with `next` until it is null.
        """
        plan = self._plan(bulk.CANCEL)
        by = self.operator.principal
        outcomes, untried = bulk.act_on(bulk.CANCEL, self._find_planned(plan), by=by)
        kinds = Counter(outcome.kind for outcome in outcomes)
        answer = {
            **self._describe(plan),
            "cancelled": kinds["done"],
            "ended": kinds["ended"],
            "gone": kinds["gone"],
            "untried": untried,
        }
        return Response(self.get_serializer(answer).data)

    @extend_schema(operation_id="run_tasks_again")
    @action(
        detail=False,
        methods=["post"],
        url_path="run-again",
        required_right=TO_RUN_AGAIN,
        serializer_class=RunAgainSerializer,
        request_serializer_class=TaskAgainChoiceSerializer,
    )
    def run_again(self, request: Request) -> Response:
        """Run the selected tasks again that have ended, newest first, at most a thousand per request.

        Each is repeated as a new task, as by `run-again` of one task; agents may repeat side effects. With `dry_run`
        the answer only counts the tasks by state and agent. Continue with `next` until it is null; an equal `nonce`
        runs no task twice.
        """
        plan = self._plan(bulk.AGAIN)
        nonce = self.given.get("nonce") or uuid.uuid4().hex
        by = self.operator.principal
        outcomes, untried = bulk.act_on(bulk.AGAIN, self._find_planned(plan), by=by, nonce=nonce)
        reasons = Counter(one.text for one in outcomes if one.kind == "refused")
        answer = {
            **self._describe(plan),
            "again": [
                {"key": one.task, "new_key": new.task, "new_id": new.id, "before": new.before}
                for one in outcomes
                if (new := one.again)
            ],
            "refused": [
                {"reason": reason, "count": count} for reason, count in reasons.most_common()
            ],
            "gone": sum(one.kind == "gone" for one in outcomes),
            "untried": untried,
        }
        return Response(self.get_serializer(answer).data)

    @extend_schema(
        operation_id="export_tasks",
        responses={(200, "application/jsonl"): EXPORT, (200, "text/csv"): EXPORT},
    )
    @action(detail=False, methods=["post"], request_serializer_class=TaskExportChoiceSerializer)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Stream the selected tasks, however many there are. The audit log records the export.

        Of the messages, the export has only the beginning of each task's first one.
        """
        wanted, form = make_selection(self.given), self.given["format"]
        return stream_export(form, self.get_queryset(), wanted, self.operator.tenant)

    def _plan(self, wanted_action: BulkAction) -> Plan:
        """Return the tasks that the request selects. Raises ValidationError if it selects none."""
        given = self.given
        if not (given["all"] or (FILTERS | {"keys"}) & given.keys()):
            raise serializers.ValidationError({"all": "Say which, or that all are meant."})
        rows, wanted = self._select_plain(), make_selection(given)
        if "cursor" in given:
            rows = rows.filter(pk__lt=given["cursor"])
        if "keys" in given:  # the answer counts those of them whose state does not allow the action
            return bulk.plan(wanted_action, rows.filter(pk__in=given["keys"]), wanted)
        if states := (
            wanted.states & wanted_action.states if wanted.states else wanted_action.states
        ):
            return bulk.plan(wanted_action, rows, wanted.among(states))
        return Plan(keys=[], parts=[], more=False, others=0)

    def _describe(self, plan: Plan) -> dict[str, Any]:
        named = len(set(self.given.get("keys", [])))
        parts = [{"state": state, "agent": agent, "count": n} for state, agent, n in plan.parts]
        return {
            "found": len(plan.keys),
            "parts": parts,
            "keys": plan.keys,
            "others": plan.others,
            "missing": named - len(plan.keys) - plan.others if named else 0,
            "next": sign_cursor(self.request, plan.keys[-1] if plan.more else None),
        }

    def _find_planned(self, plan: Plan) -> list[int]:
        """Return the keys of the plan; none for a dry run."""
        return [] if self.given["dry_run"] else plan.keys

    def _select_plain(self) -> QuerySet[Task]:
        return self.get_queryset().select_related(None).only("pk", "state", "agent")
