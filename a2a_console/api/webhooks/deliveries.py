"""Deliveries in the API: receiver, events, attempts and state of each, with retry and replay."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import Conflict
from a2a_console.api.operators import RequiredRight, filter_visible
from a2a_console.api.pagination import (
    CreatedQuerySerializer,
    CursorField,
    agent_field,
    key_field,
    moment_field,
    sign_cursor,
)
from a2a_console.api.schema import extend_schema
from a2a_console.api.stored import LIMIT, StoredField, parse_stored, select_stored
from a2a_console.api.viewsets import HostViewSet
from a2a_console.diagnosis.deliveries import last_attempt, reason_of, with_company
from a2a_console.times import MomentField
from a2a_push.models import Delivery, DeliveryStatus
from a2a_push.store.bodies import select_body
from a2a_push.store.delivery_selection import DeliverySelection
from a2a_push.store.replays import replay, retry_now
from a2a_push.store.retries import forecast, is_switched_off

__all__ = ["DeliveryViewSet"]

TO_SEND = RequiredRight.to_change("a2a_push.delivery", of_agents=True)
#: The largest number of attempts in the answer that shows a delivery.
ATTEMPTS = 100
#: The largest number of deliveries that one request replays; the next request continues.
BATCH = 1_000


class AttemptLineSerializer(serializers.Serializer[Any]):
    """An attempt in a list."""

    number = serializers.IntegerField()
    started_at = MomentField()
    seconds = serializers.FloatField()
    status = serializers.IntegerField(
        allow_null=True, help_text="HTTP status of the response; null = no response."
    )
    fault = serializers.CharField(help_text="The error in one word; empty = no error.")


class AttemptSerializer(AttemptLineSerializer):
    """An attempt and the response."""

    trigger = serializers.CharField(help_text="`schedule`, or `operator`: a user asked for it.")
    detail = serializers.CharField(help_text="Description of the attempt.")
    excerpt = serializers.CharField(help_text="The beginning of the receiver's answer.")
    worker = serializers.CharField()


class DeliveryLineSerializer(serializers.Serializer[Delivery]):
    """A delivery in a list."""

    key = serializers.IntegerField(source="pk", help_text="Number of the delivery in this host.")
    id = serializers.CharField(source="webhook_id", help_text="The header `webhook-id`.")
    status = serializers.ChoiceField(DeliveryStatus.values)
    reason = serializers.SerializerMethodField()
    attempts = serializers.IntegerField(help_text="Attempts since creation or the last replay.")
    next_at = MomentField(
        allow_null=True, help_text="Time of the next attempt; null = at once, or none."
    )
    replays = serializers.IntegerField()
    agent = serializers.CharField(source="task.agent")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    config_key = serializers.IntegerField(
        source="config_id", allow_null=True, help_text="The webhook; null = it was deleted."
    )
    receiver = serializers.CharField(source="receiver.address")
    receiver_key = serializers.IntegerField(source="receiver_id")
    first_event = serializers.IntegerField(source="number", help_text="Number of the first event.")
    last_event = serializers.IntegerField(source="through")
    dialect = serializers.CharField()
    content_type = serializers.CharField()
    last_attempt = serializers.SerializerMethodField()
    created_at = MomentField()
    settled_at = MomentField(allow_null=True)

    def get_reason(self, row: Delivery) -> str:
        """The reason why the delivery waits or died, in a sentence; empty if it succeeded."""
        return reason_of(row)

    @extend_schema_field(AttemptLineSerializer(allow_null=True))
    def get_last_attempt(self, row: Delivery) -> Any:
        """The newest attempt; null before the first."""
        attempt = last_attempt(row)
        return None if attempt is None else AttemptLineSerializer(attempt).data


class DeliverySerializer(DeliveryLineSerializer):
    """A delivery with its body and attempts."""

    size = serializers.IntegerField(help_text="Length of the body in characters.")
    body = StoredField(help_text=f"The body to send; null if longer than {LIMIT} characters.")
    tries = AttemptSerializer(many=True, help_text=f"The newest {ATTEMPTS} attempts, oldest first.")

    def to_representation(self, instance: Delivery) -> dict[str, Any]:
        """Add the body and the attempts."""
        bodies = Delivery.objects.filter(pk=instance.pk).annotate(whole=select_body())
        length, text = select_stored(bodies, "whole").values_list("length", "text").get()
        tries = AttemptSerializer(instance.tries.order_by("-pk")[:ATTEMPTS], many=True).data
        more = {"size": length, "body": parse_stored(text), "tries": tries[::-1]}
        return {**DeliveryLineSerializer(instance).data, **more}


class DeliveryQuerySerializer(CreatedQuerySerializer):
    """The filters of deliveries."""

    status = serializers.ListField(
        child=serializers.ChoiceField(DeliveryStatus.values),
        required=False,
        max_length=len(DeliveryStatus.values),
        help_text="One of these statuses.",
    )
    id = serializers.CharField(required=False, max_length=40, help_text="The `webhook-id`.")
    agent = agent_field()
    task_key = key_field()
    config_key = key_field()
    receiver_key = key_field()


class ReplayChoiceSerializer(serializers.Serializer[Any]):
    """The choice of deliveries to send again; every parameter narrows it."""

    ids = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        allow_empty=False,
        max_length=BATCH,
        help_text="The `webhook-id`s of deliveries, also of delivered ones.",
    )
    task_key = key_field()
    agent = agent_field()
    receiver_key = key_field()
    since = moment_field("Created at or after this time.")
    until = moment_field("Created before this time.")
    all = serializers.BooleanField(
        required=False, default=False, help_text="All dead deliveries. Required without filters."
    )
    also_delivered = serializers.BooleanField(
        required=False,
        default=False,
        help_text="True: also send delivered ones, which then arrive twice.",
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Only count them.")
    cursor = CursorField()


class ReplaySerializer(serializers.Serializer[Any]):
    """The result of a replay."""

    found = serializers.IntegerField(help_text="Number of deliveries that this request selected.")
    replayed = serializers.IntegerField(help_text="Deliveries that will be sent again.")
    left_alone = serializers.IntegerField(
        help_text="Number of the selected deliveries that are not sent: pending, without a webhook, unknown, or held back. In a dry run, all of them."
    )
    on_trial = serializers.IntegerField(
        help_text="Number of the selected deliveries whose receiver or webhook was disabled automatically. It is enabled again."
    )
    held_back = serializers.IntegerField(
        help_text="Number of the selected deliveries that are not sent because a user disabled their receiver."
    )
    next = serializers.CharField(
        allow_null=True,
        help_text="Repeat the request with this as `cursor` to continue. Null = no more.",
    )


#: The parameters that narrow a replay.
NARROWING = {"ids", "task_key", "agent", "receiver_key", "since", "until"}


class DeliveryViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[Delivery]):
    """Deliveries, newest first, with the reason why each waits or died."""

    queryset = with_company(Delivery.objects.all())
    serializer_class = DeliveryLineSerializer
    serializer_classes = {"retrieve": DeliverySerializer}
    required_right = RequiredRight.to_view("a2a_push.delivery", of_agents=True)
    visible_by = "task__"
    request_serializer_classes = {"list": DeliveryQuerySerializer}
    filter_lookups = {
        "status": "status__in",
        "id": "webhook_id",
        "agent": "task__agent",
        "task_key": "task",
        "config_key": "config",
        "receiver_key": "receiver",
    }
    indexed_parameters = frozenset({"id", "task_key", "config_key", "receiver_key"})

    @extend_schema(operation_id="try_delivery_now")
    @action(detail=True, methods=["post"], url_path="try-now", required_right=TO_SEND)
    def try_now(self, request: Request, key: int) -> Response:
        """Try a pending delivery at once; this counts as an attempt, and the schedule continues after it.

        409 if the delivery is not pending, or an operator has disabled its receiver. While the breaker of a receiver is
        open, nothing is sent to it.
        """
        row = self.get_object()
        if not retry_now(row.pk):
            raise Conflict(_explain_refusal(row) or "The delivery is not pending")
        return Response(self.get_serializer(self.get_object()).data)

    @action(detail=True, methods=["post"], required_right=TO_SEND)
    def replay(self, request: Request, key: int) -> Response:
        """Send a settled delivery again, under the same `webhook-id`, from the beginning of the schedule.

        A receiver or a webhook that was disabled automatically is enabled again at once. It is disabled again after
        ten more failures before a first success, or a 410. 409 if the delivery is pending, its webhook was deleted,
        or an operator has disabled its receiver.
        """
        row = self.get_object()
        if not replay([row.pk]):
            gone = "The delivery is pending, or its webhook was deleted"
            raise Conflict(_explain_refusal(row) or gone)
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(operation_id="replay_deliveries")
    @action(
        detail=False,
        methods=["post"],
        url_path="replay",
        required_right=TO_SEND,
        serializer_class=ReplaySerializer,
        request_serializer_class=ReplayChoiceSerializer,
    )
    def replay_many(self, request: Request) -> Response:
        """Send many deliveries again, oldest first, at most a thousand per request.

        Only dead deliveries are sent, unless `also_delivered` or `ids` say otherwise. Continue with `next` until it is
        null.
        """
        given = self.given
        if not (given["all"] or NARROWING & given.keys()):
            raise serializers.ValidationError({"all": "Say which, or that all are meant."})
        keys = self._find_chosen()
        batch = keys[:BATCH]
        prospect = forecast(Delivery.objects.filter(pk__in=batch))
        replayed = 0 if given["dry_run"] else replay(batch)
        named = len(set(given["ids"])) if "ids" in given else len(batch)
        answer = {
            "found": len(batch),
            "replayed": replayed,
            "left_alone": named - replayed,
            "on_trial": prospect.on_trial,
            "held_back": prospect.held_back,
            "next": sign_cursor(request, batch[-1] if len(keys) > BATCH else None),
        }
        return Response(self.get_serializer(answer).data)

    def _find_chosen(self) -> list[int]:
        """Return the keys of the next deliveries, oldest first, and one more if there is one."""
        given = self.given
        chosen = DeliverySelection(
            only_dead=not (given["also_delivered"] or "ids" in given),
            ids=given.get("ids"),
            agent=given.get("agent", ""),
            receiver=given.get("receiver_key"),
            since=given.get("since"),
            until=given.get("until"),
        )
        rows = filter_visible(self.operator, chosen.rows(), by=self.visible_by)
        rows = rows.filter(pk__gt=given.get("cursor", 0))
        if task := given.get("task_key"):
            rows = rows.filter(task=task)
        return list(rows.values_list("pk", flat=True)[: BATCH + 1])


def _explain_refusal(row: Delivery) -> str:
    """Return the reason of a refusal if the receiver is disabled; empty otherwise."""
    if row.config is None or not is_switched_off(row.config.receiver):
        return ""
    return f"The receiver is disabled: {row.config.receiver.disabled_reason}. Enable it first"
