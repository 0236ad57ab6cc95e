"""Contexts: the conversations, each with its tasks."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, page, page_of
from a2a_tasks.api.problems import NotFound
from a2a_tasks.api.tasks import TaskLineSerializer, task_rows, with_openings
from a2a_tasks.models import Context

__all__ = ["ContextList", "ContextOne"]

TO_VIEW = Right.to_view("a2a_tasks.context", of_agents=True)
#: Tasks in the answer that shows a context.
TASKS = 50


class ContextLineSerializer(serializers.ModelSerializer[Context]):
    """A context, in a line."""

    key = serializers.IntegerField(source="pk", help_text="The host's own number of it.")
    id = serializers.CharField(
        source="public_id", help_text="As its owner knows it; another owner may have the same."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(help_text="Of its newest message.")

    class Meta:
        model = Context
        fields: tuple[str, ...] = (
            "key",
            "id",
            "agent",
            "tenant",
            "owner",
            "created_at",
            "updated_at",
        )


class ContextSerializer(ContextLineSerializer):
    """A context with its tasks."""

    tasks = TaskLineSerializer(
        many=True, help_text=f"The {TASKS} of which the status changed last, that one first."
    )

    class Meta(ContextLineSerializer.Meta):
        fields = (*ContextLineSerializer.Meta.fields, "tasks")


class ContextQuery(CreatedQuery):
    """Which contexts."""

    id = serializers.CharField(required=False, max_length=256, help_text="The whole id.")
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    tenant = serializers.CharField(
        required=False, max_length=256, allow_blank=True, help_text="Exactly; empty = of none."
    )
    owner = serializers.CharField(
        required=False, max_length=256, allow_blank=True, help_text="A principal."
    )


COLUMNS = {"id": "public_id", "agent": "agent", "tenant": "tenant", "owner": "owner"}


class ContextList(View):
    """Contexts."""

    @action("list_contexts", TO_VIEW, page_of(ContextLineSerializer), query=ContextQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List contexts, newest first."""
        wanted = {column: asked[name] for name, column in COLUMNS.items() if name in asked}
        found = page(_rows(request).filter(**wanted), asked, indexed="id" in asked)
        return Response(page_of(ContextLineSerializer)(found).data)


class ContextOne(View):
    """One context."""

    @action("get_context", TO_VIEW, ContextSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a context with its tasks."""
        context = _rows(request).filter(pk=key).first()
        if context is None:
            raise NotFound
        # The index `task_list_by_context` has this order.
        tasks = task_rows(request).filter(context=key).order_by("-status_at", "-pk")[:TASKS]
        return Response(
            {
                **ContextLineSerializer(context).data,
                "tasks": TaskLineSerializer(with_openings(list(tasks)), many=True).data,
            }
        )


def _rows(request: Request) -> QuerySet[Context]:
    return there_for(operator_of(request), Context.objects.all())
