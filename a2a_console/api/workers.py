"""Workers in the API: the processes of the host, with the queues and the load of each."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import ItemsPagination
from a2a_console.api.viewsets import HostViewSet
from a2a_console.times import MomentField
from a2a_tasks.models import Worker, WorkerKind
from a2a_tasks.store import workers

__all__ = ["WorkerViewSet"]


class WorkerSerializer(serializers.Serializer[Any]):
    """A process of this host."""

    name = serializers.CharField(
        help_text="Name of the process: `GET /runs?status=running&worker=` lists its runs."
    )
    kind = serializers.ChoiceField(WorkerKind.values)
    state = serializers.ChoiceField(["alive", "draining", "dead", "replaced"])
    queues = serializers.ListField(child=serializers.CharField())
    agents = serializers.DictField(
        child=serializers.CharField(),
        help_text="The agents whose code the process has, with their versions.",
    )
    slots = serializers.IntegerField(help_text="Maximum number of concurrent runs.")
    running = serializers.IntegerField(help_text="Runs of the process at the last heartbeat.")
    host = serializers.CharField()
    pid = serializers.IntegerField()
    version = serializers.CharField(help_text="Release of the code of the process: `A2A_RELEASE`.")
    started_at = MomentField()
    seen_at = MomentField()


class WorkerViewSet(HostViewSet[Worker]):
    """Workers."""

    serializer_class = WorkerSerializer
    pagination_class = ItemsPagination
    required_right = RequiredRight.to_view("a2a_tasks.worker")

    def list(self, request: Request) -> Response:
        """List the processes of this host, dead ones for a day, or for an hour if another one has begun in their place. At most 1,000: those that were seen last. For operators of a tenant the list is empty."""
        seen = workers.list_seen() if self.operator.tenants is None else []
        for one in seen:
            one.worker.state = one.state  # type: ignore[attr-defined]  # for the serializer
        found = [one.worker for one in seen]
        return self.get_paginated_response(self.get_serializer(found, many=True).data)
