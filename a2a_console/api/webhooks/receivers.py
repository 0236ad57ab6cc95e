"""Receivers in the API: the health of each, enabling and disabling."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import Conflict
from a2a_console.api.operators import RequiredRight
from a2a_console.api.pagination import CreatedQuerySerializer
from a2a_console.api.viewsets import HostViewSet
from a2a_console.search.bounded_rows import COUNTED, count_bounded
from a2a_console.times import MomentField
from a2a_console.webhooks.receiver_health import FAILING, Word, describe_health, filter_health
from a2a_push.models import Delivery, DeliveryStatus, Receiver
from a2a_push.store.receivers import read
from a2a_push.store.switches import disable, enable

__all__ = ["ReceiverViewSet"]

TO_SWITCH = RequiredRight.to_change("a2a_push.receiver")
#: The largest number of characters of a reason.
MAX_REASON = 200


class ReceiverLineSerializer(serializers.Serializer[Receiver]):
    """A receiver in a list."""

    key = serializers.IntegerField(source="pk", help_text="Number of the receiver in this host.")
    tenant = serializers.CharField()
    address = serializers.CharField(help_text="URL of the receiver, without the query.")
    health = serializers.SerializerMethodField()
    why = serializers.SerializerMethodField()
    until = serializers.SerializerMethodField()
    failures_in_a_row = serializers.SerializerMethodField()
    openings = serializers.SerializerMethodField()
    delivered = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Attempts that failed.")
    last_success_at = MomentField(allow_null=True)
    last_failure_at = MomentField(allow_null=True)
    last_seconds = serializers.FloatField(allow_null=True)
    paused_until = MomentField(allow_null=True)
    disabled_at = MomentField(allow_null=True)
    created_at = MomentField()

    @extend_schema_field(serializers.ChoiceField([word.value for word in Word]))
    def get_health(self, row: Receiver) -> str:
        """The state of the circuit breaker: `closed` (all is well), `gone` (the last answer was 410), `paused`, `half-open`, `open` or `disabled`."""
        return describe_health(row).word

    def get_why(self, row: Receiver) -> str:
        """The reason why nothing, or one delivery at a time, is sent; empty if all deliveries are sent."""
        return describe_health(row).why

    @extend_schema_field(MomentField(allow_null=True))
    def get_until(self, row: Receiver) -> str | None:
        """The moment until which nothing is sent; null if that is unknown, or deliveries are sent."""
        end = describe_health(row).until
        return end.isoformat() if end else None

    def get_failures_in_a_row(self, row: Receiver) -> int:
        """The number of failures since the last success."""
        return read(row).in_a_row

    def get_openings(self, row: Receiver) -> int:
        """The number of times that the breaker opened since it was closed last."""
        return read(row).openings


class ReceiverSerializer(ReceiverLineSerializer):
    """A receiver with its health and the numbers of its deliveries."""

    pending = serializers.IntegerField(help_text=f"Pending deliveries, at most {COUNTED}.")
    dead = serializers.IntegerField(help_text=f"Dead deliveries, at most {COUNTED}.")

    def to_representation(self, instance: Receiver) -> dict[str, Any]:
        """Add the numbers of deliveries."""
        counts = {
            "pending": int(_count(instance, DeliveryStatus.PENDING)),
            "dead": int(_count(instance, DeliveryStatus.DEAD)),
        }
        return {**ReceiverLineSerializer(instance).data, **counts}


class ReceiverQuerySerializer(CreatedQuerySerializer):
    """The filters of receivers."""

    health = serializers.ChoiceField(
        [Word.DISABLED.value, Word.OPEN.value, Word.PAUSED.value, FAILING],
        required=False,
        help_text="`open`: also those that are half-open. `failing`: the last attempt failed, or was slow and an earlier one failed.",
    )
    address = serializers.CharField(
        required=False, max_length=2_000, help_text="A part of the URL, without the query."
    )


@extend_schema_serializer(component_name="Reason")
class DisableSerializer(serializers.Serializer[Any]):
    """The reason why a receiver is disabled."""

    reason = serializers.CharField(
        max_length=MAX_REASON,
        help_text="The reason, for other users. Deliveries that die because of it show it.",
    )


class ReceiverViewSet(ListModelMixin, RetrieveModelMixin, HostViewSet[Receiver]):
    """Receivers, newest first."""

    queryset = Receiver.objects.all()
    serializer_class = ReceiverLineSerializer
    serializer_classes = {"retrieve": ReceiverSerializer}
    required_right = RequiredRight.to_view("a2a_push.receiver")
    request_serializer_classes = {"list": ReceiverQuerySerializer}

    def filter_queryset(self, queryset: QuerySet[Receiver, Any]) -> QuerySet[Receiver, Any]:
        """Return the receivers that match all given parameters."""
        given = self.given
        if address := given.get("address"):
            queryset = queryset.filter(address__contains=address.partition("?")[0])
        health = given.get("health")
        return filter_health(queryset, health) if health else queryset

    @action(detail=True, methods=["post"], required_right=TO_SWITCH)
    def enable(self, request: Request, key: int) -> Response:
        """Enable a receiver. This also closes its breaker and ends a pause.

        409 if deliveries were being sent to it. Dead deliveries stay dead until they are replayed.
        """
        if not enable(self.get_object().pk):
            raise Conflict("Nothing kept the receiver from being sent to")
        return Response(self.get_serializer(self.get_object()).data)

    @action(
        detail=True,
        methods=["post"],
        required_right=TO_SWITCH,
        request_serializer_class=DisableSerializer,
    )
    def disable(self, request: Request, key: int) -> Response:
        """Disable a receiver until an operator enables it; its deliveries meanwhile are dead at once, with the reason.

        409 if the receiver was disabled already.
        """
        # The reason has no name of the operator: only the audit log has it, where an erasure can replace it.
        if not disable(self.get_object().pk, " ".join(self.given["reason"].split())):
            raise Conflict("The receiver was disabled already")
        return Response(self.get_serializer(self.get_object()).data)


def _count(row: Receiver, status: DeliveryStatus) -> int:
    return count_bounded(Delivery.objects.filter(receiver=row, status=status).order_by("-pk"))
