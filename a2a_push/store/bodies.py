"""Long bodies of deliveries: stored once for all webhooks that receive the same, and read only for sending or display."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeVar

from django.db.models import (
    Case,
    Exists,
    F,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    When,
)
from django.db.models.expressions import Combinable

from a2a_push.models import Delivery, DeliveryBody
from a2a_push.store.records import LARGE

__all__ = ["Key", "has", "key_of", "put", "read", "remove_unused", "sizes", "select_body"]

M = TypeVar("M", bound=Model)


class Key(NamedTuple):
    """The columns that deliveries with the same body share; both tables have them."""

    task_id: int
    number: int
    through: int
    dialect: str


def key_of(delivery: Delivery) -> Key:
    """Return the key of a delivery's body."""
    return Key(delivery.task_id, delivery.number, delivery.through, delivery.dialect)


def has(delivery: Delivery) -> bool:
    """Return whether the body is stored. If so, lock it, so that `remove_unused` does not delete it."""
    found = DeliveryBody.objects.filter(**key_of(delivery)._asdict()).values_list("pk", flat=True)
    return found.select_for_update(no_key=True).first() is not None


def put(delivery: Delivery, text: str) -> int:
    """Give a delivery its body, in its own row or in the shared one. Returns the size in bytes."""
    size = len(text.encode())
    delivery.body = text if size <= LARGE else ""
    if size > LARGE:
        row = DeliveryBody(**key_of(delivery)._asdict(), size=size, body=text)
        # If another process has just stored it, that body is sent.
        DeliveryBody.objects.bulk_create([row], ignore_conflicts=True)
    return size


def sizes(deliveries: Collection[Delivery]) -> dict[Key, int]:
    """Return the sizes of the long bodies of these deliveries, in bytes."""
    rows = _of(deliveries)
    return {Key(*key): size for *key, size in rows.values_list(*Key._fields, "size")}


def read(deliveries: Collection[Delivery]) -> dict[Key, bytes]:
    """Return the long bodies of these deliveries."""
    rows = _of(deliveries).values_list(*Key._fields, "body")
    return {Key(*key): body.encode() for *key, body in rows}


def _of(deliveries: Collection[Delivery]) -> QuerySet[DeliveryBody]:
    keys = {key_of(delivery) for delivery in deliveries if not delivery.body}
    if not keys:
        return DeliveryBody.objects.none()
    return DeliveryBody.objects.filter(reduce(or_, (Q(**key._asdict()) for key in keys)))


def select_body() -> Combinable:
    """Return the expression for the body of a delivery, from its own row or the shared one."""
    shared = _same(DeliveryBody.objects.all()).values("body")
    return Case(When(body="", then=Subquery(shared)), default=F("body"), output_field=TextField())


def remove_unused(tasks: Collection[int]) -> None:
    """Delete the bodies of these tasks that no delivery uses any more, after deliveries were deleted."""
    rows = DeliveryBody.objects.filter(task__in=tasks).select_for_update(skip_locked=True)
    # A new delivery may use a body at this moment: its transaction has locked the row, or will not find it.
    locked = list(rows.values_list("pk", flat=True))
    used = Exists(_same(Delivery.objects.filter(body="")))
    DeliveryBody.objects.filter(pk__in=locked).exclude(used).delete()


def _same(rows: QuerySet[M]) -> QuerySet[M]:
    return rows.filter(**{name: OuterRef(name) for name in Key._fields})
