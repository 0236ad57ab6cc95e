"""Webhooks in the API: URL, progress and state of each. No answer contains the secrets."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import Conflict
from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import CreatedQuerySerializer, agent_field, key_field
from a2a_console.api.stored import parse_stored
from a2a_console.api.viewsets import HostViewSet
from a2a_console.diagnosis.webhooks import without_secrets
from a2a_console.times import MomentField
from a2a_console.webhooks.configs import STATES, describe_config, filter_state, redact_url
from a2a_push.models import PushConfig
from a2a_push.store.switches import enable_config

__all__ = ["ConfigViewSet"]


class ConfigLineSerializer(serializers.Serializer[PushConfig]):
    """A webhook without its secrets."""

    key = serializers.IntegerField(source="pk", help_text="Number of the webhook in this host.")
    id = serializers.CharField(source="public_id", help_text="The owner's id of the webhook.")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    agent = serializers.CharField(source="task.agent")
    receiver = serializers.CharField(source="receiver.address")
    receiver_key = serializers.IntegerField(source="receiver_id")
    url = serializers.SerializerMethodField()
    dialect = serializers.CharField(help_text="The dialect of the notifications.")
    schemes = serializers.SerializerMethodField()
    has_secrets = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    disabled_reason = serializers.CharField()
    delivered_up_to = serializers.IntegerField(
        source="cursor", help_text="Number of the last event that is delivered or dead."
    )
    last_event = serializers.IntegerField(source="task.last_event", help_text="The newest event.")
    due_at = MomentField(allow_null=True)
    lease_until = MomentField(allow_null=True, help_text="End of the sender's lease.")
    worker = serializers.CharField(help_text="The process that sends, or sent last.")
    created_at = MomentField()

    def get_url(self, row: PushConfig) -> str:
        """The URL, without the values in its query, which often are credentials."""
        return redact_url(row.url)

    def get_schemes(self, row: PushConfig) -> list[str]:
        """The authentication schemes of the webhook."""
        found = parse_stored(row.schemes)
        return [str(name) for name in found] if isinstance(found, list) else []

    def get_has_secrets(self, row: PushConfig) -> bool:
        """True if a token, credentials or headers are stored; they are never shown."""
        return bool(getattr(row, "has_secrets", True))

    @extend_schema_field(serializers.ChoiceField(STATES))
    def get_state(self, row: PushConfig) -> str:
        """`active`, `settled` (the task has ended, and all its events are delivered or dead) or `disabled`."""
        return describe_config(row)


class ConfigQuerySerializer(CreatedQuerySerializer):
    """The filters of webhooks."""

    state = serializers.ChoiceField(STATES, required=False)
    task_key = key_field()
    receiver_key = key_field()
    agent = agent_field()


class ConfigViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[PushConfig]):
    """Webhooks, newest first."""

    serializer_class = ConfigLineSerializer
    required_right = RequiredRight.to_view("a2a_push.pushconfig")
    visible_by = "task__"
    request_serializer_classes = {"list": ConfigQuerySerializer}
    filter_lookups = {"task_key": "task", "receiver_key": "receiver", "agent": "task__agent"}
    indexed_parameters = frozenset({"task_key", "receiver_key"})
    queryset = without_secrets(PushConfig.objects.all())

    def filter_queryset(self, queryset: QuerySet[PushConfig, Any]) -> QuerySet[PushConfig, Any]:
        """Return the webhooks that match all given parameters."""
        rows = super().filter_queryset(queryset)
        state = self.given.get("state")
        return filter_state(rows, state) if state else rows

    @action(
        detail=True,
        methods=["post"],
        required_right=RequiredRight.to_change("a2a_push.pushconfig"),
    )
    def enable(self, request: Request, key: int) -> Response:
        """Enable a disabled webhook for events from now on; dead deliveries stay dead until they are replayed.

        409 if the webhook was not disabled.
        """
        if not enable_config(self.get_object().pk):
            raise Conflict("The webhook was not disabled")
        return Response(self.get_serializer(self.get_object()).data)
