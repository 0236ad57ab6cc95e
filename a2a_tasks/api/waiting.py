"""Work for people: tasks that wait, who sees to them, and what is answered in their owners' place."""

from __future__ import annotations

import base64
import datetime
import json
from typing import Any

from asgiref.sync import async_to_sync
from django.core import signing
from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin.assigning import CannotHave, found
from a2a_tasks.agents import Part, data, file
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import PageQuery
from a2a_tasks.api.problems import wrong
from a2a_tasks.api.stored import SAID, StoredField, document, size, unless_long
from a2a_tasks.api.tasks import TO_VIEW, TaskLineSerializer, find_task
from a2a_tasks.models import Task
from a2a_tasks.operations import answer_task, hand_over
from a2a_tasks.operations.assign_task import assign_by_key
from a2a_tasks.store.waiting import KINDS, Place, after, waiting

__all__ = ["TaskAnswer", "TaskAssign", "TaskHandover", "WaitingList"]

TO_ANSWER = Right.to_change("a2a_tasks.task", verb="answer", of_agents=True)
SALT = "a2a.api/waiting"
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class WaitingLineSerializer(TaskLineSerializer):
    """A task that waits for somebody, in a line."""

    asked = StoredField(help_text=f"The Message in its status. {SAID}")
    assigned_to = serializers.SerializerMethodField(help_text="Who sees to it; null = nobody.")
    hand_over = serializers.SerializerMethodField(
        help_text="Names of the secrets it waits to be handed."
    )

    class Meta(TaskLineSerializer.Meta):
        fields = (*TaskLineSerializer.Meta.fields, "asked", "assigned_to", "hand_over")

    def get_assigned_to(self, task: Task) -> str | None:
        """The user's name."""
        held = getattr(task, "assignment", None)
        return held.user.get_username() if held else None

    def get_hand_over(self, task: Task) -> list[str]:
        """None once they were handed over."""
        secret = getattr(task, "handed_secret", None)
        if secret is None or secret.handed_at is not None:
            return []
        return list(json.loads(secret.names))

    def to_representation(self, instance: Task) -> dict[str, Any]:
        """With its message as a document."""
        instance.asked = document(instance.text)  # type: ignore[attr-defined]  # annotated
        return dict(super().to_representation(instance))


class WaitingPageSerializer(serializers.Serializer[Any]):
    """A page, oldest first."""

    items = WaitingLineSerializer(many=True)
    next = serializers.CharField(
        allow_null=True, help_text="`cursor` of the next page; null at the end."
    )


class WaitingQuery(PageQuery):
    """Which of them."""

    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    kind = serializers.ChoiceField(list(KINDS), required=False, help_text="What they wait for.")
    assigned_to = serializers.CharField(
        required=False, allow_blank=True, max_length=150, help_text="A user's name; empty = nobody."
    )


class FileSerializer(serializers.Serializer[Any]):
    """A file."""

    filename = serializers.CharField(max_length=256)
    media_type = serializers.CharField(max_length=256)
    content = serializers.RegexField(BASE64, help_text="Base64.")


class AnswerSerializer(serializers.Serializer[Any]):
    """What is answered: one of text, data and files, or several."""

    text = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    data = serializers.JSONField(required=False, help_text="Any JSON.")  # type: ignore[assignment] # DRF takes fields off the class
    files = FileSerializer(many=True, required=False)
    event = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="`last_event` as you saw it: refused if the task asks something else since.",
    )


class AssignSerializer(serializers.Serializer[Any]):
    """To whom."""

    to = serializers.CharField(
        allow_null=True, max_length=150, help_text="A user's name; null = nobody any more."
    )


class HandoverSerializer(serializers.Serializer[Any]):
    """A link that works once. It is told here and nowhere again."""

    url = serializers.CharField(help_text="Relative to the host if `A2A_PUBLIC_URL` is not set.")
    expires_at = serializers.DateTimeField()


class WaitingList(View):
    """Work for people."""

    @action("list_waiting", TO_VIEW, WaitingPageSerializer, query=WaitingQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List the tasks that wait for people, those that wait longest first."""
        rows = there_for(operator_of(request), waiting(asked.get("kind", ""))).filter(
            _chosen(asked)
        )
        if asked.get("cursor"):
            rows = after(rows, _place(asked["cursor"]))
        rows = rows.select_related("context", "assignment__user", "handed_secret")
        rows = rows.defer(
            *("status_message", "metadata", "memory", "run_token"),
            *("handed_secret__sealed", "handed_secret__token_hash", "handed_secret__reason"),
        ).annotate(length=size("status_message"), text=unless_long("status_message", "length"))
        items = list(rows[: asked["size"] + 1])
        more, items = len(items) > asked["size"], items[: asked["size"]]
        page = {"items": items, "next": _cursor(items[-1]) if more else None}
        return Response(WaitingPageSerializer(page).data)


class TaskAnswer(View):
    """Answering one."""

    @action(
        "answer_task", TO_ANSWER, TaskLineSerializer, body=AnswerSerializer, problems=(404, 409)
    )
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Answer what a task waits for, in its owner's place. Its history says that an operator did, the audit log who.

        409 if the task does not wait (any more), asks something else by now, or its agent is off.
        """
        task = find_task(request, key)
        parts = [data(asked["data"])] if "data" in asked else []
        parts += map(_file, asked.get("files", ()))
        said = answer_task.content(asked.get("text", ""), "", parts)
        by = operator_of(request).principal
        async_to_sync(answer_task.answer_by_key)(task.pk, said, by=by, event=asked.get("event"))
        return Response(TaskLineSerializer(find_task(request, key)).data)


class TaskAssign(View):
    """Giving one to somebody."""

    @action(
        "assign_task", TO_ANSWER, TaskLineSerializer, body=AssignSerializer, problems=(404, 409)
    )
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Say who of the staff sees to a task that waits, or that nobody does any more.

        Whoever is named must be allowed to answer, and see the task's tenant. 409 if the task does not wait.
        """
        task = find_task(request, key)
        to = asked["to"]
        try:
            user = None if to is None else found(to, task.tenant).pk
        except CannotHave as fault:
            raise wrong("body", "to", str(fault)) from None
        async_to_sync(assign_by_key)(task.pk, user, by=operator_of(request).principal)
        return Response(TaskLineSerializer(find_task(request, key)).data)


class TaskHandover(View):
    """A link for one that waits for a secret."""

    @action("make_handover_link", TO_ANSWER, HandoverSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Make a fresh link to the page on which a task's secrets are handed over. Links before it open nothing any more.

        409 if the task does not wait for a secret.
        """
        task = find_task(request, key)
        by = operator_of(request).principal
        link = async_to_sync(hand_over.fresh_link)(task.pk, by=by)
        return Response(HandoverSerializer(link).data)


def _chosen(asked: Asked) -> Q:
    chosen = Q(agent=asked["agent"]) if "agent" in asked else Q()
    if "assigned_to" not in asked:
        return chosen
    name = asked["assigned_to"]
    return chosen & (Q(assignment__user__username=name) if name else Q(assignment__isnull=True))


def _cursor(task: Task) -> str:
    return signing.Signer(salt=SALT).sign_object([task.status_at.isoformat(), task.pk])


def _place(cursor: str) -> Place:
    try:
        since, key = signing.Signer(salt=SALT).unsign_object(cursor)
        return Place(datetime.datetime.fromisoformat(since), int(key))
    except (signing.BadSignature, ValueError, TypeError):
        raise wrong("query", "cursor", "This is not a cursor of this list.") from None


def _file(said: dict[str, str]) -> Part:
    return file(base64.b64decode(said["content"]), said["filename"], said["media_type"])
