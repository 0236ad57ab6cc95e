"""Workers: which processes are there, what each is for, and how busy it was when it was seen last."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin.worker_admin import state_of
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of
from a2a_tasks.models import WorkerKind
from a2a_tasks.store import workers

__all__ = ["WorkerList"]

TO_VIEW = Right.to_view("a2a_tasks.worker")
#: What is shown as the process said it.
SAID = (
    *("name", "kind", "queues", "agents", "slots", "running", "host", "pid", "version"),
    *("started_at", "seen_at"),
)


class WorkerSerializer(serializers.Serializer[Any]):
    """A process of this host."""

    name = serializers.CharField(
        help_text="As runs name it: `GET /runs?status=running&worker=` lists what it holds."
    )
    kind = serializers.ChoiceField(WorkerKind.values)
    state = serializers.ChoiceField(["alive", "draining", "dead", "replaced"])
    queues = serializers.ListField(child=serializers.CharField())
    agents = serializers.DictField(
        child=serializers.CharField(),
        help_text="The agents its code has, each with the version on its card.",
    )
    slots = serializers.IntegerField(help_text="Runs it carries at once at the most.")
    running = serializers.IntegerField(help_text="How many it carried when it was seen.")
    host = serializers.CharField()
    pid = serializers.IntegerField()
    version = serializers.CharField(help_text="Of its code: `A2A_RELEASE`.")
    started_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField()


class WorkersSerializer(serializers.Serializer[Any]):
    """All processes that are remembered, by name."""

    items = WorkerSerializer(many=True)


class WorkerList(View):
    """Workers."""

    @action("list_workers", TO_VIEW, WorkersSerializer)
    def get(self, request: Request, asked: Asked) -> Response:
        """List the processes of this host; dead ones for a day. To operators of a tenant there are none."""
        told = workers.seen() if operator_of(request).tenants is None else []
        items = [
            {**{name: getattr(one.worker, name) for name in SAID}, "state": state_of(one)}
            for one in told
        ]
        return Response(WorkersSerializer({"items": items}).data)
