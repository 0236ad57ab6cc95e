"""The log of a task, by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, TextField, When
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right
from a2a_tasks.api.paging import MOST, SIZE
from a2a_tasks.api.stored import SAID, StoredField, document, links, size, unless_long
from a2a_tasks.api.tasks import find_task
from a2a_tasks.models import Event, Message
from a2a_tasks.protocol.files import Link
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import TaskState

__all__ = ["TaskEvents"]

LAST_NUMBER = 2**31 - 1


class EventSerializer(serializers.Serializer[Any]):
    """An event of a task."""

    number = serializers.IntegerField(help_text="From 1, without gaps.")
    kind = serializers.ChoiceField([kind.name.lower() for kind in EventKind])
    state = serializers.CharField(allow_null=True, help_text="Of a status; null of other kinds.")
    run = serializers.IntegerField(allow_null=True, help_text="The run that wrote it.")
    created_at = serializers.DateTimeField()
    size = serializers.IntegerField(help_text="In characters.")
    body = StoredField(help_text=SAID)


class EventsSerializer(serializers.Serializer[Any]):
    """Events, oldest first."""

    items = EventSerializer(many=True)
    next = serializers.IntegerField(
        allow_null=True, help_text="`after` of the next page; null if there are no more now."
    )


class EventsQuery(serializers.Serializer[Any]):
    """Which events."""

    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=LAST_NUMBER,
        help_text="Those with greater numbers.",
    )
    size = serializers.IntegerField(
        required=False, default=SIZE, min_value=1, max_value=MOST, help_text="Events of a page."
    )


class TaskEvents(View):
    """The events of a task."""

    @action(
        "list_task_events",
        Right.to_view("a2a_tasks.task", of_agents=True),
        EventsSerializer,
        query=EventsQuery,
        problems=(404,),
    )
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """List the events of a task, oldest first; go on from the last number to follow it.

        Retention removes the oldest ones: then the first is not number 1.
        """
        task = find_task(request, key)
        found = list(_after(task.pk, asked["after"])[: asked["size"] + 1])
        link = links(request, task.agent)
        items = [_shown(event, link) for event in found[: asked["size"]]]
        more = len(found) > asked["size"]
        return Response(
            EventsSerializer({"items": items, "next": items[-1]["number"] if more else None}).data
        )


def _after(task: int, number: int) -> QuerySet[Event, Any]:
    """The events after a number; an accepted message has its text in its own row."""
    message = Message.objects.filter(task_id=OuterRef("task_id"), number=OuterRef("number"))
    said = Case(
        When(body="", then=Subquery(message.values("body")[:1])),
        default=F("body"),
        output_field=TextField(),
    )
    return (
        Event.objects.filter(task_id=task, number__gt=number)
        .annotate(said=said)
        .annotate(length=size("said"), text=unless_long("said", "length"))
        .order_by("number")
        .values("number", "kind", "state", "run", "created_at", "length", "text")
    )


def _shown(event: Mapping[str, Any], link: Link) -> dict[str, Any]:
    known = event["state"] in set(TaskState)
    return {
        **event,
        "kind": EventKind(event["kind"]).name.lower(),
        "state": TaskState(event["state"]).word if known else None,
        "size": event["length"] or 0,
        "body": document(event["text"], link),
    }
