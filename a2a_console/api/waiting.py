"""The inbox in the API: tasks that wait for people, their assignees, and answers on behalf of their owners."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import CursorPagination, PageQuerySerializer, agent_field
from a2a_console.api.schema import extend_schema
from a2a_console.api.stored import AS_STORED, StoredField, select_stored
from a2a_console.api.tasks import TaskRowsViewSet
from a2a_console.handover import hand_over
from a2a_console.queue import answer_task
from a2a_console.queue.assign_task import assign_by_key
from a2a_console.queue.assignees import CannotHave, find_user
from a2a_console.queue.waiting import KINDS, QueuePlace, after, list_waiting
from a2a_console.search.task_record import TaskLineSerializer, add_openings
from a2a_console.staff import name_lookup
from a2a_console.times import MomentField
from a2a_tasks.agents import data, file
from a2a_tasks.models import LONG_COLUMNS, Task

__all__ = ["TaskAnswerViewSet", "WaitingLineSerializer", "WaitingViewSet"]

TO_ANSWER = RequiredRight.to_change("a2a_tasks.task", verb="answer", of_agents=True)
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class WaitingLineSerializer(TaskLineSerializer):
    """A waiting task in a list."""

    asked = StoredField(source="text", help_text=f"The Message with the question. {AS_STORED}")
    assigned_to = serializers.SerializerMethodField(
        help_text="The user who is to answer the task; null = nobody."
    )
    hand_over = serializers.SerializerMethodField(
        help_text="Names of the secrets that the task waits for."
    )

    def get_assigned_to(self, task: Task) -> str | None:
        """Return the name of the assignee."""
        assignment = getattr(task, "assignment", None)
        return assignment.user.get_username() if assignment else None

    def get_hand_over(self, task: Task) -> list[str]:
        """Return the names of the secrets; none once they were handed over."""
        secret = getattr(task, "handed_secret", None)
        if secret is None or secret.handed_at is not None:
            return []
        return list(json.loads(secret.names))


class WaitingQuerySerializer(PageQuerySerializer):
    """The filters of waiting tasks."""

    agent = agent_field()
    kind = serializers.ChoiceField(
        list(KINDS), required=False, help_text="Kind of answer that the task waits for."
    )
    assigned_to = serializers.CharField(
        required=False, allow_blank=True, max_length=150, help_text="Assigned user; empty = none."
    )


class FileSerializer(serializers.Serializer[Any]):
    """A file of an answer."""

    filename = serializers.CharField(max_length=256)
    media_type = serializers.CharField(max_length=256)
    content = serializers.RegexField(BASE64, help_text="The content in base64.")


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer: text, data and files, at least one of them."""

    text = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    data = serializers.JSONField(required=False, help_text="A data part: any JSON value.")  # type: ignore[assignment] # DRF takes fields off the class
    files = FileSerializer(many=True, required=False)
    event = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="The `last_event` that you saw. The answer is refused if the task has asked a new question since then.",
    )


class AssignSerializer(serializers.Serializer[Any]):
    """The new assignee."""

    to = serializers.CharField(
        allow_null=True, max_length=150, help_text="Name of the user; null = unassign the task."
    )


class HandoverSerializer(serializers.Serializer[Any]):
    """A link that works once. Only this answer contains it."""

    url = serializers.CharField(help_text="Relative to the host if `A2A_PUBLIC_URL` is not set.")
    expires_at = MomentField()


class WaitingPagination(CursorPagination):
    """Pages in the order of the time since which tasks wait, oldest first."""

    def find_page(self, rows: Any, view: Any) -> tuple[list[Any], Any]:
        """Return the tasks after the place in the query, and the place of the last one."""
        query, size = view.given, view.given["size"]
        if "cursor" in query:
            since, key = query["cursor"]
            rows = after(rows, QueuePlace(datetime.datetime.fromisoformat(since), key))
        found = list(rows[: size + 1])
        last = found[size - 1] if len(found) > size else None
        return add_openings(found[:size]), last and [last.status_at.isoformat(), last.pk]


class WaitingViewSet(ListModelMixin, TaskRowsViewSet):
    """The tasks that wait for people, those that wait longest first."""

    serializer_class = WaitingLineSerializer
    request_serializer_classes = {"list": WaitingQuerySerializer}
    pagination_class = WaitingPagination
    filter_lookups = {"agent": "agent"}

    def get_queryset(self) -> QuerySet[Task]:
        """Return the waiting tasks of the requested kind and assignee, with their questions."""
        given = self.given
        self.queryset = list_waiting(given.get("kind", ""))
        rows = super().get_queryset()
        if name := given.get("assigned_to"):
            rows = rows.filter(**{name_lookup("assignment__user"): name})
        elif "assigned_to" in given:
            rows = rows.filter(assignment__isnull=True)
        rows = rows.select_related("context", "assignment__user", "handed_secret").defer(
            *LONG_COLUMNS,
            *("handed_secret__sealed", "handed_secret__token_hash", "handed_secret__reason"),
        )
        return select_stored(rows, "status_message")


class TaskAnswerViewSet(TaskRowsViewSet):
    """Actions on a task that waits for people."""

    required_right = TO_ANSWER

    @extend_schema(operation_id="answer_task")
    @action(detail=True, methods=["post"], request_serializer_class=AnswerSerializer)
    def answer(self, request: Request, key: int) -> Response:
        """Answer a waiting task on behalf of its owner. Its history says that an operator answered, the audit log who.

        409 if the task does not wait (any more), asks something else by now, or its agent is off.
        """
        task, given = self.get_object(), self.given
        parts = [data(given["data"])] if "data" in given else []
        parts += [
            file(base64.b64decode(one["content"]), one["filename"], one["media_type"])
            for one in given.get("files", ())
        ]
        content = answer_task.content(given.get("text", ""), "", parts)
        by = self.operator.principal
        async_to_sync(answer_task.answer_by_key)(task.pk, content, by=by, event=given.get("event"))
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(operation_id="assign_task")
    @action(detail=True, methods=["post"], request_serializer_class=AssignSerializer)
    def assign(self, request: Request, key: int) -> Response:
        """Assign a waiting task to a user of the staff, or unassign it.

        The user has to be allowed to answer and to see the task's tenant. 409 if the task does not wait.
        """
        task, name = self.get_object(), self.given["to"]
        try:
            user = None if name is None else find_user(name, task.tenant).pk
        except CannotHave as fault:
            raise serializers.ValidationError({"to": str(fault)}) from None
        async_to_sync(assign_by_key)(task.pk, user, by=self.operator.principal)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(operation_id="make_handover_link")
    @action(detail=True, methods=["post"], serializer_class=HandoverSerializer)
    def handover(self, request: Request, key: int) -> Response:
        """Create a new link to the page on which a task's secrets are handed over. Earlier links stop working.

        409 if the task does not wait for a secret.
        """
        by = self.operator.principal
        link = async_to_sync(hand_over.fresh_link)(self.get_object().pk, by=by)
        return Response(self.get_serializer(link).data)
