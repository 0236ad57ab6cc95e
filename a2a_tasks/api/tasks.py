"""Tasks: found, read with all that happened to them, cancelled."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import F, QuerySet
from django.db.models.functions import Left
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, moment_field, page, page_of
from a2a_tasks.api.problems import NotFound
from a2a_tasks.api.runs import RunLineSerializer, of_task
from a2a_tasks.api.stored import SAID, StoredField, document, size, unless_long
from a2a_tasks.models import Artifact, Message, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log

__all__ = ["TaskCancel", "TaskList", "TaskOne", "TaskLineSerializer", "find_task", "task_rows"]

TO_VIEW = Right.to_view("a2a_tasks.task", of_agents=True)
TO_CANCEL = Right.to_change("a2a_tasks.task", of_agents=True)
#: Messages, artifacts and runs in the answer that shows a task.
MESSAGES, ARTIFACTS, RUNS = 50, 50, 20
STATES = {state.word: state for state in TaskState}
UNFINISHED = "unfinished"


class TaskLineSerializer(serializers.ModelSerializer[Task]):
    """A task, in a line."""

    key = serializers.IntegerField(source="pk", help_text="The host's own number of it.")
    id = serializers.CharField(
        source="public_id", help_text="As its owner knows it; another owner may have the same."
    )
    context = serializers.CharField(source="context.public_id")  # type: ignore[assignment] # DRF takes fields off the class
    context_key = serializers.IntegerField(source="context_id")
    state = serializers.SerializerMethodField()
    dialect = serializers.CharField(source="origin_dialect", help_text="In which it was made.")
    is_task = serializers.BooleanField(help_text="False: answered by a direct Message.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(source="status_at", help_text="Of its status.")
    last_event = serializers.IntegerField(help_text="Number of its newest event.")

    class Meta:
        model = Task
        fields: tuple[str, ...] = (
            *("key", "id", "agent", "tenant", "owner", "context", "context_key", "state"),
            *("dialect", "is_task", "created_at", "updated_at", "last_event"),
        )

    @extend_schema_field(serializers.ChoiceField(list(STATES)))
    def get_state(self, task: Task) -> str:
        """The state as people say it."""
        return TaskState(task.state).word


class MessageSerializer(serializers.Serializer[Any]):
    """A message of the task's history."""

    number = serializers.IntegerField(help_text="Of the event that recorded it.")
    role = serializers.CharField()
    created_at = serializers.DateTimeField()
    size = serializers.IntegerField(help_text="In characters.")
    body = StoredField(help_text=SAID)


class ArtifactSerializer(serializers.Serializer[Any]):
    """An artifact of the task."""

    id = serializers.CharField()
    position = serializers.IntegerField()
    first_event = serializers.IntegerField(help_text="With which it begins, as it is now.")
    is_complete = serializers.BooleanField(help_text="False while it grows: see the events.")
    size = serializers.IntegerField(help_text="In characters.")
    body = StoredField(help_text=SAID)


class LogSerializer(serializers.Serializer[Any]):
    """Which events there are."""

    first = serializers.IntegerField(help_text="Those before it were removed by retention.")
    last = serializers.IntegerField()


class TaskSerializer(TaskLineSerializer):
    """A task with what belongs to it."""

    status_message = StoredField(help_text="The Message in its status.")
    metadata = StoredField()
    messages = MessageSerializer(many=True, help_text=f"The newest {MESSAGES}, oldest first.")
    artifacts = ArtifactSerializer(many=True, help_text=f"The first {ARTIFACTS}.")
    runs = RunLineSerializer(many=True, help_text=f"The newest {RUNS}, newest first.")
    events = LogSerializer()

    class Meta(TaskLineSerializer.Meta):
        fields = (
            *TaskLineSerializer.Meta.fields,
            *("status_message", "metadata", "messages", "artifacts", "runs", "events"),
        )


class TaskQuery(CreatedQuery):
    """Which tasks."""

    state = serializers.ListField(
        child=serializers.ChoiceField([*STATES, UNFINISHED]),
        required=False,
        max_length=len(STATES),
        help_text=f"Any of these; `{UNFINISHED}`: those that have not ended.",
    )
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    tenant = serializers.CharField(
        required=False, max_length=256, allow_blank=True, help_text="Exactly; empty = of none."
    )
    owner = serializers.CharField(
        required=False,
        max_length=256,
        allow_blank=True,
        help_text="A principal; empty = callers without credentials.",
    )
    context = serializers.CharField(  # type: ignore[assignment] # as above
        required=False, max_length=256, help_text="The id of a context."
    )
    dialect = serializers.ChoiceField(sorted(DIALECTS), required=False)
    id = serializers.CharField(required=False, max_length=256, help_text="The whole id.")
    id_prefix = serializers.CharField(
        required=False, max_length=256, help_text="What the id begins with."
    )
    updated_after = moment_field("Of this status since then or later.")
    updated_before = moment_field("Of this status since before then.")


#: What is asked for as it stands in a column.
COLUMNS = {
    "agent": "agent",
    "tenant": "tenant",
    "owner": "owner",
    "dialect": "origin_dialect",
    "id": "public_id",
    "context": "context__public_id",
    "updated_after": "status_at__gte",
    "updated_before": "status_at__lt",
}
#: By any of these an index leads to the rows.
INDEXED = {"id", "context"}


class TaskList(View):
    """Tasks."""

    @action("list_tasks", TO_VIEW, page_of(TaskLineSerializer), query=TaskQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List tasks, newest first."""
        rows = _chosen(task_rows(request), asked)
        indexed = bool(INDEXED & asked.keys()) or _by_one_index(asked, request)
        return Response(page_of(TaskLineSerializer)(page(rows, asked, indexed=indexed)).data)


class TaskOne(View):
    """One task."""

    @action("get_task", TO_VIEW, TaskSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a task with its messages, artifacts and runs."""
        task = find_task(request, key)
        whole = TaskLineSerializer(task).data | _belongings(task)
        return Response(whole)


class TaskCancel(View):
    """Cancelling one."""

    @action("cancel_task", TO_CANCEL, TaskLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Cancel a task: it is final at once, then its agent is stopped.

        409 if it has ended, also if it was cancelled before.
        """
        task = find_task(request, key)
        by = operator_of(request).principal
        async_to_sync(cancel_task.cancel_by_key)(task.pk, by=by)
        return Response(TaskLineSerializer(find_task(request, key)).data)


def task_rows(request: Request) -> QuerySet[Task]:
    """The tasks that there are for the operator, without what is long or a key."""
    rows = Task.objects.select_related("context")
    rows = rows.defer("status_message", "metadata", "memory", "run_token")
    return there_for(operator_of(request), rows)


def find_task(request: Request, key: int) -> Task:
    """A task by its number. Raises NotFound."""
    task = task_rows(request).filter(pk=key).first()
    if task is None:
        raise NotFound
    return task


def _chosen(rows: QuerySet[Task], asked: Asked) -> QuerySet[Task]:
    wanted = {column: asked[name] for name, column in COLUMNS.items() if name in asked}
    rows = rows.filter(**wanted)
    if states := _states(asked):
        rows = rows.filter(state__in=states)
    if prefix := asked.get("id_prefix"):
        # Compared as it is, on both databases; LIKE of SQLite does not tell a from A.
        rows = rows.alias(begin=Left(F("public_id"), len(prefix))).filter(begin=prefix)
    return rows


def _states(asked: Asked) -> list[TaskState]:
    words = asked.get("state", [])
    meant = {STATES[word] for word in words if word in STATES}
    return sorted(meant | (set(TaskState) - TERMINAL if UNFINISHED in words else set()))


def _by_one_index(asked: Asked, request: Request) -> bool:
    """By state, or by agent, and by nothing else: then that index has nothing but what is asked for."""
    if not operator_of(request).sees_all:
        return False
    narrowing = asked.keys() - {"cursor", "size", "created_after", "created_before"}
    return narrowing in ({"state"}, {"agent"}, set())


def _belongings(task: Task) -> dict[str, Any]:
    """What belongs to a task, each by a bounded read along its key."""
    columns = Task.objects.filter(pk=task.pk).values_list("status_message", "metadata")
    status_message, metadata = columns.first() or ("", "")
    return {
        "status_message": document(status_message),
        "metadata": document(metadata),
        "messages": _messages(task.pk),
        "artifacts": _artifacts(task.pk),
        "runs": RunLineSerializer(of_task(task.pk)[:RUNS], many=True).data,
        "events": {"first": log.beginning(task.pk) or 1, "last": task.last_event},
    }


def _messages(task: int) -> Any:
    rows = (
        Message.objects.filter(task_id=task)
        .annotate(length=size("body"), text=unless_long("body", "length"))
        .order_by("-number")
        .values("number", "role", "created_at", "length", "text")[:MESSAGES]
    )
    shown = [{**row, "size": row["length"], "body": document(row["text"])} for row in rows]
    return MessageSerializer(shown[::-1], many=True).data


def _artifacts(task: int) -> Any:
    rows = (
        Artifact.objects.filter(task_id=task)
        .annotate(length=size("body"), text=unless_long("body", "length"))
        .order_by("position")
        .values("artifact_id", "position", "first_event", "length", "text")[:ARTIFACTS]
    )
    shown = [
        {
            **row,
            "id": row["artifact_id"],
            "is_complete": row["length"] > 0,
            "size": row["length"],
            "body": document(row["text"]),
        }
        for row in rows
    ]
    return ArtifactSerializer(shown, many=True).data
