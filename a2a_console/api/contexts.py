"""Contexts in the API: conversations with their tasks."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin

from a2a_console.api.operators import RequiredRight, filter_visible, get_operator
from a2a_console.api.pagination import CreatedQuerySerializer, agent_field, tenant_field
from a2a_console.api.tasks import select_tasks
from a2a_console.api.viewsets import HostViewSet
from a2a_console.search.task_record import TaskLineSerializer, add_openings
from a2a_console.times import MomentField
from a2a_tasks.models import Context

__all__ = ["ContextViewSet"]

#: The largest number of tasks in the answer that shows a context.
TASKS = 50


class ContextLineSerializer(serializers.Serializer[Context]):
    """A context in a list."""

    key = serializers.IntegerField(source="pk", help_text="Number of the context in this host.")
    id = serializers.CharField(
        source="public_id",
        help_text="The owner's id of the context. Other owners may use an equal id.",
    )
    agent = serializers.CharField()
    tenant = serializers.CharField()
    owner = serializers.CharField()
    created_at = MomentField()
    updated_at = MomentField(help_text="Time of the client's newest message in the context.")


class ContextSerializer(ContextLineSerializer):
    """A context with its tasks."""

    tasks = TaskLineSerializer(
        many=True, help_text=f"The {TASKS} tasks whose status changed last, newest first."
    )

    def to_representation(self, instance: Context) -> dict[str, Any]:
        """Add the tasks that are visible to the operator."""
        tasks = filter_visible(get_operator(self.context["request"]), select_tasks())
        # The index `task_list_by_context` has this order.
        newest = tasks.filter(context=instance.pk).order_by("-status_at", "-pk")[:TASKS]
        lines = TaskLineSerializer(add_openings(list(newest)), many=True).data
        return {**ContextLineSerializer(instance).data, "tasks": lines}


class ContextQuerySerializer(CreatedQuerySerializer):
    """The filters of contexts."""

    id = serializers.CharField(required=False, max_length=256, help_text="Full id of a context.")
    agent = agent_field()
    tenant = tenant_field()
    owner = serializers.CharField(
        required=False, max_length=256, allow_blank=True, help_text="The owner of the contexts."
    )


class ContextViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[Context]):
    """Contexts, newest first."""

    queryset = Context.objects.all()
    serializer_class = ContextLineSerializer
    serializer_classes = {"retrieve": ContextSerializer}
    required_right = RequiredRight.to_view("a2a_tasks.context", of_agents=True)
    request_serializer_classes = {"list": ContextQuerySerializer}
    filter_lookups = {"id": "public_id", "agent": "agent", "tenant": "tenant", "owner": "owner"}
    indexed_parameters = frozenset({"id"})
