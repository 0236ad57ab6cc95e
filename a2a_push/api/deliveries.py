"""Deliveries: what was told to whom, how that went, why it waits; tried now, sent again."""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_push.admin.reading import last_attempt, reason_of, with_company
from a2a_push.api.configs import LAST_KEY
from a2a_push.models import Attempt, Delivery, Status
from a2a_push.store.bodies import whole
from a2a_push.store.chosen import Chosen
from a2a_push.store.replays import replay, retry_now
from a2a_push.store.trials import foreseen, is_switched_off
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Right, operator_of, there_for
from a2a_tasks.api.paging import CreatedQuery, moment_field, page, page_of
from a2a_tasks.api.problems import Conflict, NotFound, wrong
from a2a_tasks.api.stored import LIMIT, StoredField, document, size, unless_long

__all__ = ["DeliveryList", "DeliveryOne", "DeliveryReplay", "DeliveryTryNow", "Replay"]

TO_VIEW = Right.to_view("a2a_push.delivery", of_agents=True)
TO_SEND = Right.to_change("a2a_push.delivery", of_agents=True)
#: Attempts in the answer that shows a delivery.
ATTEMPTS = 100
#: Deliveries that one request replays; the next request goes on.
BATCH = 1_000


class AttemptLineSerializer(serializers.ModelSerializer[Attempt]):
    """An attempt, in a line."""

    status = serializers.IntegerField(allow_null=True, help_text="Of the answer; null: none came.")
    fault = serializers.CharField(help_text="What went wrong, in a word; empty = nothing.")

    class Meta:
        model = Attempt
        fields: tuple[str, ...] = ("number", "started_at", "seconds", "status", "fault")


class AttemptSerializer(AttemptLineSerializer):
    """An attempt, and what was answered."""

    trigger = serializers.CharField(help_text="`schedule`, or `operator`: somebody wanted it.")
    detail = serializers.CharField(help_text="What happened, in words.")
    excerpt = serializers.CharField(help_text="The beginning of the answer.")
    worker = serializers.CharField()

    class Meta(AttemptLineSerializer.Meta):
        fields = (*AttemptLineSerializer.Meta.fields, "trigger", "detail", "excerpt", "worker")


class DeliveryLineSerializer(serializers.ModelSerializer[Delivery]):
    """A delivery, in a line."""

    key = serializers.IntegerField(source="pk", help_text="The host's own number of it.")
    id = serializers.CharField(source="webhook_id", help_text="Its `webhook-id`.")
    status = serializers.ChoiceField(Status.values)
    reason = serializers.SerializerMethodField()
    attempts = serializers.IntegerField(help_text="Since it was made or last replayed.")
    next_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is tried next; null: at once, or never again."
    )
    replays = serializers.IntegerField()
    agent = serializers.CharField(source="task.agent")
    task = serializers.CharField(source="task.public_id", help_text="The task's id.")
    task_key = serializers.IntegerField(source="task_id")
    config_key = serializers.IntegerField(
        source="config_id", allow_null=True, help_text="Null: the webhook was taken away."
    )
    receiver = serializers.CharField(source="receiver.address")
    receiver_key = serializers.IntegerField(source="receiver_id")
    first_event = serializers.IntegerField(source="number", help_text="Of those it tells of.")
    last_event = serializers.IntegerField(source="through")
    last_attempt = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    settled_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            *("key", "id", "status", "reason", "attempts", "next_at", "replays", "agent", "task"),
            *("task_key", "config_key", "receiver", "receiver_key", "first_event", "last_event"),
            *("dialect", "content_type", "last_attempt", "created_at", "settled_at"),
        )

    def get_reason(self, row: Delivery) -> str:
        """Why it waits, or died, in a sentence; empty if it was delivered."""
        return reason_of(row)

    @extend_schema_field(AttemptLineSerializer(allow_null=True))
    def get_last_attempt(self, row: Delivery) -> Any:
        """The newest attempt; null before the first."""
        attempt = last_attempt(row)
        return None if attempt is None else AttemptLineSerializer(attempt).data


class DeliverySerializer(DeliveryLineSerializer):
    """A delivery with what is sent, and every attempt."""

    size = serializers.IntegerField(help_text="Of the body, in characters.")
    body = StoredField(help_text=f"What is sent; null if longer than {LIMIT} characters.")
    tries = AttemptSerializer(many=True, help_text=f"The newest {ATTEMPTS} attempts, oldest first.")

    class Meta(DeliveryLineSerializer.Meta):
        fields = (*DeliveryLineSerializer.Meta.fields, "size", "body", "tries")


class DeliveryQuery(CreatedQuery):
    """Which deliveries."""

    status = serializers.ListField(
        child=serializers.ChoiceField(Status.values),
        required=False,
        max_length=len(Status.values),
        help_text="Any of these.",
    )
    id = serializers.CharField(required=False, max_length=40, help_text="A `webhook-id`.")
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    task_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    config_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    receiver_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)


COLUMNS = {
    "status": "status__in",
    "id": "webhook_id",
    "agent": "task__agent",
    "task_key": "task",
    "config_key": "config",
    "receiver_key": "receiver",
}
#: By any of these an index leads to the rows.
INDEXED = {"id", "task_key", "config_key", "receiver_key"}


class DeliveryList(View):
    """Deliveries."""

    @action("list_deliveries", TO_VIEW, page_of(DeliveryLineSerializer), query=DeliveryQuery)
    def get(self, request: Request, asked: Asked) -> Response:
        """List deliveries, newest first, with why each waits or died."""
        wanted = {column: asked[name] for name, column in COLUMNS.items() if name in asked}
        found = page(_rows(request).filter(**wanted), asked, indexed=bool(INDEXED & asked.keys()))
        return Response(page_of(DeliveryLineSerializer)(found).data)


class DeliveryOne(View):
    """One delivery."""

    @action("get_delivery", TO_VIEW, DeliverySerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Show a delivery with its attempts."""
        row = _find(request, key)
        found = Delivery.objects.filter(pk=key).annotate(whole=whole())
        sized = found.annotate(length=size("whole"))
        length, text = sized.values_list("length", unless_long("whole", "length")).get()
        tries = AttemptSerializer(row.tries.order_by("-pk")[:ATTEMPTS], many=True).data
        more = {"size": length, "body": document(text), "tries": tries[::-1]}
        return Response({**DeliveryLineSerializer(row).data, **more})


class DeliveryTryNow(View):
    """Trying one at once."""

    @action("try_delivery_now", TO_SEND, DeliveryLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Try a pending delivery at once; it counts as an attempt, and the schedule goes on after it.

        409 if it is not pending, or somebody has disabled its receiver. A receiver whose breaker is open is still left alone.
        """
        row = _find(request, key)
        if not retry_now(row.pk):
            raise Conflict(_hindered(row) or "The delivery is not pending")
        return Response(DeliveryLineSerializer(_find(request, key)).data)


class DeliveryReplay(View):
    """Sending one again."""

    @action("replay_delivery", TO_SEND, DeliveryLineSerializer, problems=(404, 409))
    def post(self, request: Request, asked: Asked, *, key: int) -> Response:
        """Send a settled delivery again, under the same `webhook-id`, from the beginning of the schedule.

        A receiver or a webhook that was given up is tried again, and trusted again if it takes what comes. 409 if the
        delivery is pending, its webhook was taken away, or somebody has disabled its receiver.
        """
        row = _find(request, key)
        if not replay([row.pk]):
            gone = "The delivery is pending, or its webhook was taken away"
            raise Conflict(_hindered(row) or gone)
        return Response(DeliveryLineSerializer(_find(request, key)).data)


class ReplayChoice(serializers.Serializer[Any]):
    """Which deliveries are sent again; everything said narrows."""

    ids = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        allow_empty=False,
        max_length=BATCH,
        help_text="`webhook-id`s; of delivered ones, too.",
    )
    task_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    agent = serializers.CharField(required=False, max_length=64, help_text="A slug.")
    receiver_key = serializers.IntegerField(required=False, min_value=1, max_value=LAST_KEY)
    since = moment_field("Made then or later.")
    until = moment_field("Made before then.")
    all = serializers.BooleanField(
        required=False, default=False, help_text="Needed if nothing else narrows."
    )
    also_delivered = serializers.BooleanField(
        required=False, default=False, help_text="Delivered ones too, which come twice."
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Count them, send nothing."
    )
    cursor = serializers.CharField(
        required=False, max_length=200, help_text="`next` of the answer before."
    )


NARROWING = {"ids", "task_key", "agent", "receiver_key", "since", "until"}


class ReplaySerializer(serializers.Serializer[Any]):
    """What became of them."""

    found = serializers.IntegerField(help_text="Deliveries that this request was about.")
    replayed = serializers.IntegerField(help_text="Of these, how many will be sent again.")
    left_alone = serializers.IntegerField(
        help_text="Pending, without a webhook, unknown, or held back. Of a dry run, all that were found."
    )
    on_trial = serializers.IntegerField(
        help_text="Of those found, how many go to a receiver or webhook that was given up: it is tried again."
    )
    held_back = serializers.IntegerField(
        help_text="Of those found, how many are not sent, because somebody has disabled their receiver."
    )
    next = serializers.CharField(
        allow_null=True, help_text="There are more: the same request with this as its `cursor`."
    )


class Replay(View):
    """Sending many again."""

    @action("replay_deliveries", TO_SEND, ReplaySerializer, body=ReplayChoice)
    def post(self, request: Request, asked: Asked) -> Response:
        """Send many deliveries again, oldest first, at most a thousand a request.

        Dead ones, unless `also_delivered` or `ids` say otherwise. Go on with `next` until it is null.
        """
        if not (asked["all"] or NARROWING & asked.keys()):
            raise wrong("body", "all", "Say which, or that all are meant.")
        keys = _chosen(request, asked)
        mine = keys[:BATCH]
        prospect = foreseen(Delivery.objects.filter(pk__in=mine))
        done = 0 if asked["dry_run"] else replay(mine)
        named = len(set(asked["ids"])) if "ids" in asked else len(mine)
        more = _signer().sign_object(mine[-1]) if len(keys) > BATCH else None
        told = {"found": len(mine), "replayed": done, "left_alone": named - done, "next": more}
        told |= {"on_trial": prospect.on_trial, "held_back": prospect.held_back}
        return Response(ReplaySerializer(told).data)


def _chosen(request: Request, asked: Asked) -> list[int]:
    """The keys of the next ones, oldest first, and one more if there is one."""
    chosen = Chosen(
        only_dead=not (asked["also_delivered"] or "ids" in asked),
        ids=asked.get("ids"),
        agent=asked.get("agent", ""),
        receiver=asked.get("receiver_key"),
        since=asked.get("since"),
        until=asked.get("until"),
    )
    rows = there_for(operator_of(request), chosen.rows(), by="task__")
    rows = rows.filter(pk__gt=_opened(asked.get("cursor", "")))
    if task := asked.get("task_key"):
        rows = rows.filter(task=task)
    return list(rows.values_list("pk", flat=True)[: BATCH + 1])


def _hindered(row: Delivery) -> str:
    """Why it is not sent, if it is its receiver's standing."""
    if row.config is None or not is_switched_off(row.config.receiver):
        return ""
    return f"The receiver is disabled: {row.config.receiver.disabled_reason}. Enable it first"


def _signer() -> signing.Signer:
    return signing.Signer(salt="a2a.api/replay")


def _opened(cursor: str) -> int:
    try:
        return int(_signer().unsign_object(cursor)) if cursor else 0
    except (signing.BadSignature, ValueError, TypeError):
        raise wrong("body", "cursor", "This is not a cursor of a replay.") from None


def _rows(request: Request) -> QuerySet[Delivery]:
    return there_for(operator_of(request), with_company(Delivery.objects.all()), by="task__")


def _find(request: Request, key: int) -> Delivery:
    row = _rows(request).filter(pk=key).first()
    if row is None:
        raise NotFound
    return row
