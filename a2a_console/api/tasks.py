"""Tasks in the API: search, details, events, cancellation, running again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import Case, F, OuterRef, QuerySet, Subquery, TextField, When
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import Conflict
from a2a_console.api.operators import WRITE, RequiredRight
from a2a_console.api.pagination import (
    CursorPagination,
    KeyPagination,
    NumberPagination,
    NumberQuerySerializer,
    PageQuerySerializer,
    agent_field,
    moment_field,
    tenant_field,
)
from a2a_console.api.runs import TO_VIEW_RUNS, RunLineSerializer, select_runs
from a2a_console.api.schema import extend_schema
from a2a_console.api.stored import AS_STORED, StoredField, make_linker, parse_stored, select_stored
from a2a_console.api.viewsets import HostViewSet
from a2a_console.diagnosis.call_tree import read_tree
from a2a_console.diagnosis.reasons import Needs, Reason, diagnose
from a2a_console.rerun.run_again import MAX_NONCE_LENGTH, CannotRunAgain, run_again
from a2a_console.search import selection
from a2a_console.search.selection import STATES, Selection
from a2a_console.search.stuck_tasks import KINDS
from a2a_console.search.task_flags import MARKS
from a2a_console.search.task_record import StateField, TaskLineSerializer, add_openings
from a2a_console.times import MomentField
from a2a_tasks.models import LONG_COLUMNS, Artifact, Event, Message, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import event_log

__all__ = [
    "FILTERS",
    "TO_CANCEL",
    "TO_RUN_AGAIN",
    "TO_VIEW",
    "RunAgainBodySerializer",
    "TaskFilterSerializer",
    "TaskRowsViewSet",
    "TaskViewSet",
    "make_selection",
    "select_tasks",
]

TO_VIEW = RequiredRight.to_view("a2a_tasks.task", of_agents=True)
TO_RUN_AGAIN = RequiredRight(WRITE, ("a2a_tasks.run_again_task",))
TO_CANCEL = RequiredRight.to_change("a2a_tasks.task", of_agents=True)
#: The largest numbers of messages, artifacts and runs in the answer that shows a task.
MESSAGES, ARTIFACTS, RUNS = 50, 50, 20


class MessageSerializer(serializers.Serializer[Any]):
    """A message of the task's history."""

    number = serializers.IntegerField(help_text="Number of the event that recorded the message.")
    role = serializers.CharField()
    created_at = MomentField()
    size = serializers.IntegerField(source="length", help_text="In characters.")
    body = StoredField(source="text", help_text=AS_STORED)


class ArtifactSerializer(serializers.Serializer[Any]):
    """An artifact of the task."""

    id = serializers.CharField(source="artifact_id")
    position = serializers.IntegerField()
    first_event = serializers.IntegerField(help_text="Number of the artifact's first event.")
    is_complete = serializers.BooleanField(
        source="length", help_text="False while the artifact grows; its pieces are events."
    )
    size = serializers.IntegerField(source="length", help_text="In characters.")
    body = StoredField(source="text", help_text=AS_STORED)


class LogSerializer(serializers.Serializer[Any]):
    """The range of stored events."""

    first = serializers.IntegerField(help_text="Number of the first event that retention has left.")
    last = serializers.IntegerField()


class CalledTaskSerializer(serializers.Serializer[Any]):
    """A task of the tree of tasks that agents have given each other."""

    key = serializers.IntegerField()
    id = serializers.CharField(source="public_id")
    agent = serializers.CharField()
    state = StateField()
    depth = serializers.IntegerField(
        help_text="Number of calls between the first task and this one."
    )
    called_by = serializers.IntegerField(
        source="parent",
        allow_null=True,
        help_text="The `key` of the calling task; null: the first task of the tree.",
    )
    call = serializers.CharField(help_text="The name of the call.")
    created_at = MomentField()
    updated_at = MomentField(source="status_at")
    cost = serializers.FloatField(allow_null=True, help_text="Cost of the models; null = unknown.")
    currency = serializers.CharField()


class TaskSerializer(TaskLineSerializer):
    """A task with its messages, artifacts, runs and range of events."""

    status_message = StoredField(help_text="The Message in the task's status.")
    metadata = StoredField()
    messages = MessageSerializer(many=True, help_text=f"The newest {MESSAGES}, oldest first.")
    artifacts = ArtifactSerializer(many=True, help_text=f"The first {ARTIFACTS} artifacts.")
    runs = RunLineSerializer(many=True, help_text=f"The newest {RUNS} runs, newest first.")
    events = LogSerializer()
    tree = CalledTaskSerializer(
        many=True,
        help_text="The tree of tasks that agents have called, each task before those that it has called. Empty: no agent has called another one.",
    )

    def to_representation(self, instance: Task) -> dict[str, Any]:
        """Add the related rows, each by a bounded query along its key."""
        link = make_linker(self.context["request"], instance.agent)  # type: ignore[index] # as above
        columns = Task.objects.filter(pk=instance.pk).values_list("status_message", "metadata")
        status_message, metadata = columns.first() or ("", "")
        messages = select_stored(Message.objects.filter(task_id=instance.pk)).order_by("-number")
        artifacts = select_stored(Artifact.objects.filter(task_id=instance.pk)).order_by("position")
        runs = select_runs().filter(task_id=instance.pk).order_by("-pk")
        shown = messages.defer("body")[:MESSAGES]
        newest: Any = MessageSerializer(shown, many=True, context={"link": link}).data
        first = artifacts.defer("body")[:ARTIFACTS]
        return {
            **TaskLineSerializer(instance).data,
            "status_message": parse_stored(status_message, link),
            "metadata": parse_stored(metadata),
            "messages": newest[::-1],
            "artifacts": ArtifactSerializer(first, many=True, context={"link": link}).data,
            "runs": RunLineSerializer(runs[:RUNS], many=True).data,
            "events": {
                "first": event_log.find_first_number(instance.pk) or 1,
                "last": instance.last_event,
            },
            "tree": CalledTaskSerializer(read_tree(instance.pk), many=True).data,
        }


class TaskFilterSerializer(serializers.Serializer[Any]):
    """The filters of tasks; a task has to match all of them."""

    created_after = moment_field("Created at or after this time.")
    created_before = moment_field("Created before this time.")
    state = serializers.ListField(
        child=serializers.ChoiceField(list(STATES)),
        required=False,
        allow_empty=False,  # an empty list would count as a filter, and match every task
        max_length=len(TaskState),
        help_text="Only tasks in one of these states; `unfinished`: those that have not ended.",
    )
    agent = agent_field()
    tenant = tenant_field()
    owner = serializers.CharField(
        required=False,
        max_length=256,
        allow_blank=True,
        help_text="The principal that owns or created the tasks; empty = callers without credentials.",
    )
    context = serializers.CharField(  # type: ignore[assignment] # as above
        required=False, max_length=256, help_text="Only tasks of the context with this id."
    )
    dialect = serializers.ChoiceField(sorted(DIALECTS), required=False)
    binding = serializers.ChoiceField([one.value for one in Binding], required=False)
    mark = serializers.ChoiceField(
        [(one.name, one.words) for one in MARKS.values()],
        required=False,
        help_text="`webhooks`: the tasks of the newest 5,000 dead deliveries.",
    )
    stuck = serializers.ChoiceField(
        ["any", *KINDS],
        required=False,
        help_text="The reason why tasks do not go on; `silent`: a run without output for A2A_SILENT_MINUTES. At most 5,000 tasks are found.",
    )
    text = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Words; each has to begin one of those its first message begins with (200 characters). On SQLite "
        "they may also stand within words.",
    )
    search = serializers.CharField(
        required=False,
        max_length=256,
        help_text="An id, the id of a context, or `#` and a number; where there is none, the beginning of an id, or words.",
    )
    id = serializers.CharField(required=False, max_length=256, help_text="The full id of a task.")
    id_prefix = serializers.CharField(
        required=False, max_length=256, help_text="The first characters of the id of a task."
    )
    updated_after = moment_field("Status changed at or after this time.")
    updated_before = moment_field("Status changed before this time.")


class TaskQuerySerializer(TaskFilterSerializer, PageQuerySerializer):
    """A page of tasks."""


class RunAgainBodySerializer(serializers.Serializer[Any]):
    """The options of running a task again."""

    nonce = serializers.CharField(
        required=False,
        max_length=MAX_NONCE_LENGTH,
        help_text="A unique string of yours. A request with the `nonce` of an earlier one for this task gets its answer and runs nothing.",
    )


class EventSerializer(serializers.Serializer[Any]):
    """An event of a task."""

    number = serializers.IntegerField(help_text="Number in the task, without gaps.")
    kind = serializers.ChoiceField(
        [kind.name.lower() for kind in EventKind], source="get_kind_display"
    )
    state = StateField(
        allow_null=True, help_text="The state of a status event; null for other kinds."
    )
    run = serializers.IntegerField(allow_null=True, help_text="The run that wrote the event.")
    created_at = MomentField()
    size = serializers.IntegerField(source="length", help_text="In characters.")
    body = StoredField(source="text", help_text=AS_STORED)


class LinkSerializer(serializers.Serializer[Any]):
    """The row that a reason is about."""

    model = serializers.CharField(help_text="The table of the row, such as `a2a_tasks.run`.")
    key = serializers.IntegerField()


class ReasonSerializer(serializers.Serializer[Reason]):
    """The reason why something waits."""

    kind = serializers.CharField(help_text="A word; docs/console.md has the actions for each.")
    sentence = serializers.CharField(help_text="The reason in a sentence.")
    next = serializers.CharField(help_text="The next thing that happens to the task.")
    at = MomentField(allow_null=True, help_text="The time of `next`; null = unknown.")
    needs = serializers.ChoiceField(
        list(Needs), help_text="The party that must act so that the task goes on."
    )
    link = LinkSerializer(allow_null=True)


class DiagnosisSerializer(ReasonSerializer):
    """The reason for the state of a task."""

    also = ReasonSerializer(many=True, help_text="Other reasons, such as those of webhooks.")


FILTERS = frozenset(TaskFilterSerializer().fields)
#: Parameters with another name in a Selection.
NAMES = {
    "created_after": "made_after",
    "created_before": "made_before",
    "updated_after": "changed_after",
    "updated_before": "changed_before",
}


def make_selection(given: Mapping[str, Any]) -> Selection:
    """Return the selection for the filters of a request."""
    states = frozenset[TaskState]().union(*(STATES[word] for word in given.get("state", ())))
    filters = {NAMES.get(name, name): given[name] for name in (FILTERS & given.keys()) - {"state"}}
    return Selection(**filters, states=states)


def select_tasks() -> QuerySet[Task]:
    """Return all tasks with their contexts, without long columns and credentials."""
    rows = Task.objects.select_related("context")
    return rows.defer(*LONG_COLUMNS)


def _select_events(task: int) -> QuerySet[Event]:
    """Return the events of a task. The body of an accepted message is in the table of messages."""
    message = Message.objects.filter(task_id=OuterRef("task_id"), number=OuterRef("number"))
    said = Case(
        When(body="", then=Subquery(message.values("body")[:1])),
        default=F("body"),
        output_field=TextField(),
    )
    rows = Event.objects.filter(task_id=task).annotate(said=said)
    return select_stored(rows, "said").defer("body")


class TaskPagination(CursorPagination):
    """Pages of the tasks that the filters select, newest first."""

    def find_page(self, rows: Any, view: Any) -> tuple[list[Any], Any]:
        """Return the tasks before the key in the query, and the key before which the next page begins."""
        query = view.given
        wanted, before = make_selection(query), query.get("cursor")
        found = selection.page(rows, wanted, size=query["size"], before=before)
        return add_openings(found.items), found.older


class TaskRowsViewSet(HostViewSet[Task]):
    """The base of the viewsets of tasks."""

    queryset = select_tasks()
    serializer_class: type[serializers.BaseSerializer[Any]] = TaskLineSerializer
    required_right = TO_VIEW

    def get_object(self) -> Task:
        """Return the task with the beginning of its first message."""
        task: Task = add_openings([super().get_object()])[0]
        return task


class TaskViewSet(ListModelMixin, RetrieveModelMixin, TaskRowsViewSet):
    """Tasks, newest first."""

    request_serializer_classes = {"list": TaskQuerySerializer}
    serializer_classes = {"retrieve": TaskSerializer}
    pagination_class = TaskPagination

    @action(detail=True, methods=["post"], required_right=TO_CANCEL)
    def cancel(self, request: Request, key: int) -> Response:
        """Cancel a task: the task is final at once, then its agent is stopped.

        409 if the task has ended, also if it was cancelled before.
        """
        task = self.get_object()
        async_to_sync(cancel_task.cancel_by_key)(task.pk, by=self.operator.principal)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(operation_id="run_task_again")
    @action(
        detail=True,
        methods=["post"],
        url_path="run-again",
        required_right=TO_RUN_AGAIN,
        request_serializer_class=RunAgainBodySerializer,
    )
    def run_again(self, request: Request, key: int) -> Response:
        """Run an ended task again and show the new task, with the same owner, context and first message.

        The agent may repeat side effects. 409, with the reason, if the task has not ended or its agent or a file is
        gone.
        """
        task = self.get_object()
        try:
            again = async_to_sync(run_again)(task.pk, nonce=self.given.get("nonce", ""))
        except CannotRunAgain as why:
            raise Conflict(str(why)) from None
        self.kwargs["key"] = again.task  # the answer shows the new one
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(operation_id="list_task_events", responses=EventSerializer(many=True))
    @action(
        detail=True,
        request_serializer_class=NumberQuerySerializer,
        pagination_class=NumberPagination,
    )
    def events(self, request: Request, key: int) -> Response:
        """List the events of a task, oldest first. To follow a task, continue after the last number.

        Retention removes the oldest events: then the first one is not number 1.
        """
        task = self.get_object()
        rows: Any = _select_events(task.pk)
        context = {"link": make_linker(request, task.agent)}
        page = EventSerializer(self.paginate_queryset(rows), many=True, context=context)
        return self.get_paginated_response(page.data)

    @extend_schema(operation_id="list_task_runs", responses=RunLineSerializer(many=True))
    @action(
        detail=True,
        required_right=TO_VIEW_RUNS,
        serializer_class=RunLineSerializer,
        request_serializer_class=PageQuerySerializer,
        pagination_class=KeyPagination,
        indexed=True,
    )
    def runs(self, request: Request, key: int) -> Response:
        """List the runs of a task, newest first."""
        rows: Any = select_runs().filter(task_id=self.get_object().pk)
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(operation_id="get_task_diagnosis")
    @action(detail=True, url_path="diagnosis", serializer_class=DiagnosisSerializer)
    def get_diagnosis(self, request: Request, key: int) -> Response:
        """Show the reason for the state of a task, what happens next, and when."""
        return Response(self.get_serializer(diagnose(self.get_object().pk)).data)
