"""Webhooks: where each leads, how far it has been told, why nothing is sent to it. Its secrets are in no answer."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, Case, QuerySet, Value, When
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_push.admin.cells import shown_url
from a2a_push.admin.config_admin import state_of
from a2a_push.models import PushConfig
from a2a_push.store.switches import enable_config
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, page, page_of
from a2a_tasks.api.problems import Conflict, NotFound
from a2a_tasks.api.stored import document

__all__ = ["LAST_KEY", "ConfigEnable", "ConfigList", "ConfigOne"]

TO_VIEW = Right.to_view("a2a_push.pushconfig")
TO_SWITCH = Right.to_change("a2a_push.pushconfig")
#: The last key there can be.
LAST_KEY = 2**63 - 1
STATES = ["active", "settled", "disabled"]


class ConfigLineSerializer(serializers.ModelSerializer[PushConfig]):
    """A webhook of a task."""

    key = serializers.IntegerField(source="pk", help_text="The host's own number of it.")
    id = serializers.CharField(source="public_id", help_text="As the task's owner knows it.")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    agent = serializers.CharField(source="task.agent")
    receiver = serializers.CharField(source="receiver.address")
    receiver_key = serializers.IntegerField(source="receiver_id")
    url = serializers.SerializerMethodField()
    dialect = serializers.CharField(help_text="In which it is told.")
    schemes = serializers.SerializerMethodField()
    has_secrets = serializers.SerializerMethodField()
    state = serializers.SerializerMethodField()
    disabled_reason = serializers.CharField()
    told_up_to = serializers.IntegerField(source="cursor", help_text="The last event settled.")
    last_event = serializers.IntegerField(source="task.last_event", help_text="Of the task.")
    due_at = serializers.DateTimeField(allow_null=True)
    lease_until = serializers.DateTimeField(allow_null=True, help_text="Until then it is held.")
    worker = serializers.CharField(help_text="The process that sends for it, or did last.")
    created_at = serializers.DateTimeField()

    class Meta:
        model = PushConfig
        fields: tuple[str, ...] = (
            *("key", "id", "task", "task_key", "agent", "receiver", "receiver_key", "url"),
            *("dialect", "schemes", "has_secrets", "state", "disabled_reason", "told_up_to"),
            *("last_event", "due_at", "lease_until", "worker", "created_at"),
        )

    def get_url(self, row: PushConfig) -> str:
        """The URL, without the values in its query, which often are a key."""
        return shown_url(row.url)

    def get_schemes(self, row: PushConfig) -> list[str]:
        """The schemes of its authentication."""
        found = document(row.schemes)
        return [str(name) for name in found] if isinstance(found, list) else []

    def get_has_secrets(self, row: PushConfig) -> bool:
        """Whether a token, credentials or headers are kept; they are shown to nobody."""
        return bool(getattr(row, "has_secrets", True))

    @extend_schema_field(serializers.ChoiceField(STATES))
    def get_state(self, row: PushConfig) -> str:
        """`active`, `settled` (the task has ended, and all is told) or `disabled`."""
        return state_of(row)


class ConfigQuery(CreatedQuery):
    """Which webhooks."""

    state = serializers.ChoiceField(STATES, required=False)
    task_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    receiver_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")


COLUMNS = {"task_key": "task", "receiver_key": "receiver", "agent": "task__agent"}


class ConfigList(View):
    """Webhooks."""

    @action("list_webhook_configs", TO_VIEW, page_of(ConfigLineSerializer), query=ConfigQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List webhooks, newest first."""
        wanted = {column: asked[name] for name, column in COLUMNS.items() if name in asked}
        rows = _in_state(_rows(request).filter(**wanted), asked.get("state"))
        indexed = bool({"task_key", "receiver_key"} & asked.keys())
        return Response(page_of(ConfigLineSerializer)(page(rows, asked, indexed=indexed)).data)


class ConfigOne(View):
    """One webhook."""

    @action("get_webhook_config", TO_VIEW, ConfigLineSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a webhook; its secrets never."""
        return Response(ConfigLineSerializer(_find(request, key)).data)


class ConfigEnable(View):
    """Enabling one."""

    @action("enable_webhook_config", TO_SWITCH, ConfigLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Tell a webhook that was disabled of what comes from now on; what is dead stays so until it is replayed.

        409 if it was not disabled.
        """
        if not enable_config(_find(request, key).pk):
            raise Conflict("The webhook was not disabled")
        return Response(ConfigLineSerializer(_find(request, key)).data)


def _rows(request: Request) -> QuerySet[Any]:
    unread = ("status_message", "metadata", "memory", "run_token")
    rows = PushConfig.objects.select_related("task", "receiver")
    rows = rows.defer("secret", "token", *(f"task__{name}" for name in unread))
    kept = Case(
        When(secret="", then=Value(False)), default=Value(True), output_field=BooleanField()
    )
    return there_for(operator_of(request), rows.annotate(has_secrets=kept), by="task__")


def _find(request: Request, key: int) -> PushConfig:
    row: PushConfig | None = _rows(request).filter(pk=key).first()
    if row is None:
        raise NotFound
    return row


def _in_state(rows: QuerySet[Any], state: str | None) -> QuerySet[Any]:
    if state is None:
        return rows
    if state == "disabled":
        return rows.exclude(disabled_reason="")
    return rows.filter(disabled_reason="", active=state == "active")
