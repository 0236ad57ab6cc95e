"""Receivers: how each stands and why, switched off and on."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_push.admin.standing import Word, standing
from a2a_push.models import Delivery, Receiver, Status
from a2a_push.store.receivers import read
from a2a_push.store.switches import disable, enable
from a2a_tasks.admin.paging import COUNTED, bounded_count
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, page, page_of
from a2a_tasks.api.problems import Conflict, NotFound

__all__ = ["ReceiverDisable", "ReceiverEnable", "ReceiverList", "ReceiverOne"]

TO_VIEW = Right.to_view("a2a_push.receiver")
TO_SWITCH = Right.to_change("a2a_push.receiver")
#: Characters of a reason.
REASON = 200


class ReceiverLineSerializer(serializers.ModelSerializer[Receiver]):
    """A receiver, in a line."""

    key = serializers.IntegerField(source="pk", help_text="The host's own number of it.")
    address = serializers.CharField(help_text="URL without the query.")
    standing = serializers.SerializerMethodField()
    why = serializers.SerializerMethodField()
    until = serializers.SerializerMethodField()
    failures_in_a_row = serializers.SerializerMethodField()
    openings = serializers.SerializerMethodField()
    delivered = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="Attempts that failed.")

    class Meta:
        model = Receiver
        fields: tuple[str, ...] = (
            *("key", "tenant", "address", "standing", "why", "until", "failures_in_a_row"),
            *("openings", "delivered", "failed", "last_success_at", "last_failure_at"),
            *("last_seconds", "paused_until", "disabled_at", "created_at"),
        )

    @extend_schema_field(serializers.ChoiceField([word.value for word in Word]))
    def get_standing(self, row: Receiver) -> str:
        """`closed` (all is well), `paused`, `half-open`, `open` or `disabled`: of its breaker."""
        return standing(row, timezone.now()).word

    def get_why(self, row: Receiver) -> str:
        """Why it is not sent to; empty if it is."""
        return standing(row, timezone.now()).why

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_until(self, row: Receiver) -> str | None:
        """Until when it is left alone; null if that is not known, or it is not."""
        end = standing(row, timezone.now()).until
        return end.isoformat() if end else None

    def get_failures_in_a_row(self, row: Receiver) -> int:
        """Since the last success."""
        return read(row).in_a_row

    def get_openings(self, row: Receiver) -> int:
        """How often the breaker opened since it was closed."""
        return read(row).openings


class ReceiverSerializer(ReceiverLineSerializer):
    """A receiver with what there is for it."""

    pending = serializers.IntegerField(help_text=f"Deliveries; {COUNTED} stands for more, too.")
    dead = serializers.IntegerField(help_text=f"Deliveries; {COUNTED} stands for more, too.")

    class Meta(ReceiverLineSerializer.Meta):
        fields = (*ReceiverLineSerializer.Meta.fields, "pending", "dead")


class ReceiverQuery(CreatedQuery):
    """Which receivers."""

    standing = serializers.ChoiceField(
        [Word.DISABLED.value, Word.OPEN.value, Word.PAUSED.value, "failing"],
        required=False,
        help_text="`open`: also those that are half-open. `failing`: the last attempt failed.",
    )
    address = serializers.CharField(
        required=False, max_length=2_000, help_text="A piece of the URL, without the query."
    )


class Reason(serializers.Serializer[Any]):
    """Why a receiver is switched off."""

    reason = serializers.CharField(
        max_length=REASON, help_text="For whoever looks later; it stands with what dies by it."
    )


class ReceiverList(View):
    """Receivers."""

    @action("list_receivers", TO_VIEW, page_of(ReceiverLineSerializer), query=ReceiverQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List receivers, newest first."""
        rows = _rows(request)
        if address := asked.get("address"):
            rows = rows.filter(address__contains=address.partition("?")[0])
        found = page(_standing(rows, asked.get("standing")), asked)
        return Response(page_of(ReceiverLineSerializer)(found).data)


class ReceiverOne(View):
    """One receiver."""

    @action("get_receiver", TO_VIEW, ReceiverSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a receiver, how it stands, and how much there is for it."""
        row = _find(request, key)
        counts = {
            "pending": int(_count(row, Status.PENDING)),
            "dead": int(_count(row, Status.DEAD)),
        }
        return Response({**ReceiverLineSerializer(row).data, **counts})


class ReceiverEnable(View):
    """Enabling one."""

    @action("enable_receiver", TO_SWITCH, ReceiverLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Send there again, as to one nobody has met: breaker and pause are over as well.

        409 if nothing kept it from being sent to. What is dead stays so until it is replayed.
        """
        if not enable(_find(request, key).pk):
            raise Conflict("Nothing kept the receiver from being sent to")
        return Response(ReceiverLineSerializer(_find(request, key)).data)


class ReceiverDisable(View):
    """Disabling one."""

    @action("disable_receiver", TO_SWITCH, ReceiverLineSerializer, body=Reason, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Send nothing there until somebody enables it; what comes up meanwhile is dead, with the reason.

        409 if it was disabled already.
        """
        # It names nobody: the audit log says who it was, and forgets the name when that is erased.
        if not disable(_find(request, key).pk, " ".join(asked["reason"].split())):
            raise Conflict("The receiver was disabled already")
        return Response(ReceiverLineSerializer(_find(request, key)).data)


def _rows(request: Request) -> QuerySet[Receiver]:
    return there_for(operator_of(request), Receiver.objects.all())


def _find(request: Request, key: int) -> Receiver:
    row = _rows(request).filter(pk=key).first()
    if row is None:
        raise NotFound
    return row


def _count(row: Receiver, status: Status) -> int:
    return bounded_count(Delivery.objects.filter(receiver=row, status=status).order_by("-pk"))


def _standing(rows: QuerySet[Receiver], word: str | None) -> QuerySet[Receiver]:
    match word:
        case Word.DISABLED.value:
            return rows.exclude(disabled_at=None)
        case Word.OPEN.value:
            return rows.filter(disabled_at=None).exclude(probe_at=None)
        case Word.PAUSED.value:
            return rows.filter(paused_until__gt=timezone.now())
        case "failing":
            return rows.filter(well=False).exclude(last_failure_at=None)
    return rows
