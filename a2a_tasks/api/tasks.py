"""Tasks: found, read with all that happened to them, cancelled, run again."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import WRITE, Right, operator_of, there_for
from a2a_tasks.api.paging import Page, PageQuery, cursor_of, moment_field, opened, page_of
from a2a_tasks.api.problems import Conflict, NotFound
from a2a_tasks.api.runs import RunLineSerializer, of_task
from a2a_tasks.api.stored import SAID, StoredField, document, links, size, unless_long
from a2a_tasks.models import Artifact, Message, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.operations.run_again import LONGEST_NONCE, CannotRunAgain, run_again
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.files import Link
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import log, selection
from a2a_tasks.store.marks import marks
from a2a_tasks.store.selection import Selection
from a2a_tasks.store.sheet import openings

__all__ = [
    "TaskAgain",
    "TaskCancel",
    "TaskList",
    "FILTERS",
    "RunAgainBody",
    "TO_CANCEL",
    "TO_RUN_AGAIN",
    "TO_VIEW",
    "TaskFilters",
    "TaskOne",
    "TaskLineSerializer",
    "find_task",
    "meant",
    "task_rows",
    "with_openings",
]

TO_VIEW = Right.to_view("a2a_tasks.task", of_agents=True)
TO_RUN_AGAIN = Right(WRITE, ("a2a_tasks.run_again_task",))
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
    binding = serializers.CharField(
        source="origin_binding",
        help_text="By which it came: `JSONRPC`, `HTTP+JSON`, `GRPC`; empty = by none, an operator ran it again.",
    )
    maker = serializers.CharField(help_text="Who made it, if that is not the owner.")
    opening = serializers.SerializerMethodField(
        help_text="The beginning of its first message's text, on one line."
    )
    is_task = serializers.BooleanField(help_text="False: answered by a direct Message.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(source="status_at", help_text="Of its status.")
    last_event = serializers.IntegerField(help_text="Number of its newest event.")

    class Meta:
        model = Task
        fields: tuple[str, ...] = (
            *("key", "id", "agent", "tenant", "owner", "context", "context_key", "state"),
            *(
                "maker",
                "opening",
                "binding",
                "dialect",
                "is_task",
                "created_at",
                "updated_at",
                "last_event",
            ),
        )

    def get_opening(self, task: Task) -> str:
        """As `with_openings` found it."""
        return str(getattr(task, "opening", ""))

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


class TaskFilters(serializers.Serializer[Any]):
    """Which tasks: all of it has to be true of them."""

    created_after = moment_field("Made then or later.")
    created_before = moment_field("Made before then.")
    state = serializers.ListField(
        child=serializers.ChoiceField([*STATES, UNFINISHED]),
        required=False,
        allow_empty=False,  # it would pass for a filter, and every task through it
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
        help_text="A principal, whose it is or who made it; empty = callers without credentials.",
    )
    context = serializers.CharField(  # type: ignore[assignment] # as above
        required=False, max_length=256, help_text="The id of a context."
    )
    dialect = serializers.ChoiceField(sorted(DIALECTS), required=False)
    binding = serializers.ChoiceField([one.value for one in Binding], required=False)
    mark = serializers.ChoiceField(
        [(one.name, one.words) for one in marks()],
        required=False,
        help_text="What else is known of them, of the newest 5,000 such tasks.",
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
    id = serializers.CharField(required=False, max_length=256, help_text="The whole id.")
    id_prefix = serializers.CharField(
        required=False, max_length=256, help_text="What the id begins with."
    )
    updated_after = moment_field("Of this status since then or later.")
    updated_before = moment_field("Of this status since before then.")


class TaskQuery(TaskFilters, PageQuery):
    """The same, page by page."""


FILTERS = frozenset(TaskFilters().fields)
#: What a Selection calls otherwise.
NAMES = {
    "created_after": "made_after",
    "created_before": "made_before",
    "updated_after": "changed_after",
    "updated_before": "changed_before",
}


class TaskList(View):
    """Tasks."""

    @action("list_tasks", TO_VIEW, page_of(TaskLineSerializer), query=TaskQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List tasks, newest first."""
        return Response(page_of(TaskLineSerializer)(_page(task_rows(request), asked)).data)


class TaskOne(View):
    """One task."""

    @action("get_task", TO_VIEW, TaskSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a task with its messages, artifacts and runs."""
        task = find_task(request, key)
        whole = TaskLineSerializer(task).data | _belongings(task, links(request, task.agent))
        return Response(whole)


class RunAgainBody(serializers.Serializer[Any]):
    """The wish."""

    nonce = serializers.CharField(
        required=False,
        max_length=LONGEST_NONCE,
        help_text="A word of your own: the same wish for the same task is granted once, and answered alike.",
    )


class TaskAgain(View):
    """Running one again."""

    @action(
        "run_task_again", TO_RUN_AGAIN, TaskLineSerializer, body=RunAgainBody, problems=(404, 409)
    )
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Run an ended task again, and show the new one: of the same owner, in the same context, by its first message.

        Its agent may do twice what it did before. 409, in words, if it has not ended, or its agent or a file is gone.
        """
        task = find_task(request, key)
        try:
            again = async_to_sync(run_again)(task.pk, nonce=asked.get("nonce", ""))
        except CannotRunAgain as why:
            raise Conflict(str(why)) from None
        return Response(TaskLineSerializer(find_task(request, again.task)).data)


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
    return with_openings([task])[0]


def with_openings(tasks: list[Task]) -> list[Task]:
    """The same, each with what it began with, by one read."""
    began = openings([task.pk for task in tasks])
    for task in tasks:
        task.opening = began.get(task.pk, "")  # type: ignore[attr-defined]  # for the serializer
    return tasks


def _page(rows: QuerySet[Task], asked: Asked) -> Page[Task]:
    before = opened(Task, asked["cursor"]) if asked.get("cursor") else None
    found = selection.page(rows, meant(asked), size=asked["size"], before=before)
    following = None if found.older is None else cursor_of(Task, found.older)
    return Page(with_openings(found.items), following)


def meant(asked: Asked) -> Selection:
    """What the filters among what was asked mean."""
    fields = FILTERS & asked.keys()
    told = {NAMES.get(name, name): asked[name] for name in fields - {"state"}}
    return Selection(**told, states=frozenset(_states(asked)))


def _states(asked: Asked) -> list[TaskState]:
    words = asked.get("state", [])
    meant = {STATES[word] for word in words if word in STATES}
    return sorted(meant | (set(TaskState) - TERMINAL if UNFINISHED in words else set()))


def _belongings(task: Task, link: Link) -> dict[str, Any]:
    """What belongs to a task, each by a bounded read along its key."""
    columns = Task.objects.filter(pk=task.pk).values_list("status_message", "metadata")
    status_message, metadata = columns.first() or ("", "")
    return {
        "status_message": document(status_message, link),
        "metadata": document(metadata),
        "messages": _messages(task.pk, link),
        "artifacts": _artifacts(task.pk, link),
        "runs": RunLineSerializer(of_task(task.pk)[:RUNS], many=True).data,
        "events": {"first": log.beginning(task.pk) or 1, "last": task.last_event},
    }


def _messages(task: int, link: Link) -> Any:
    rows = (
        Message.objects.filter(task_id=task)
        .annotate(length=size("body"), text=unless_long("body", "length"))
        .order_by("-number")
        .values("number", "role", "created_at", "length", "text")[:MESSAGES]
    )
    shown = [{**row, "size": row["length"], "body": document(row["text"], link)} for row in rows]
    return MessageSerializer(shown[::-1], many=True).data


def _artifacts(task: int, link: Link) -> Any:
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
            "body": document(row["text"], link),
        }
        for row in rows
    ]
    return ArtifactSerializer(shown, many=True).data
