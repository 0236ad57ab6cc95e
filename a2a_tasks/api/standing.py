"""Why a task is stuck."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.tasks import TO_VIEW, find_task
from a2a_tasks.operations.standing import Needs, Reason, standing

__all__ = ["TaskStanding"]


class LinkSerializer(serializers.Serializer[Any]):
    """The row that a reason is about."""

    model = serializers.CharField(help_text="Such as `a2a_tasks.run`.")
    key = serializers.IntegerField()


class ReasonSerializer(serializers.Serializer[Reason]):
    """Why something waits."""

    kind = serializers.CharField(
        help_text="One word; docs/operating.md says for each what can be done."
    )
    sentence = serializers.CharField(help_text="The same for people.")
    next = serializers.CharField(help_text="The next thing that happens to it.")
    at = serializers.DateTimeField(allow_null=True, help_text="When; null: nobody knows.")
    needs = serializers.ChoiceField(
        list(Needs), help_text="Who has to do something, that it goes on."
    )
    link = LinkSerializer(allow_null=True)


class StandingSerializer(ReasonSerializer):
    """Why a task stands as it does."""

    also = ReasonSerializer(many=True, help_text="What waits beside it, such as its webhooks.")


class TaskStanding(View):
    """Why a task is stuck."""

    @action("get_task_standing", TO_VIEW, StandingSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Tell what a task waits for, what happens next, and when."""
        return Response(StandingSerializer(standing(find_task(request, key).pk)).data)
