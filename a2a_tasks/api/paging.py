"""Lists over tables of millions of rows: newest first along the key, from a cursor, never counted, never by offset.

A cursor is a key. What comes while somebody pages is newer than every cursor, so that nothing comes twice and nothing is
missed. A page looks at WINDOW keys at most where no index serves what is asked: it may then hold fewer rows than asked for, or none,
and still have a `next`.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Model, QuerySet
from rest_framework import serializers

from a2a_tasks.api.problems import wrong
from a2a_tasks.store.spans import SLACK, split

__all__ = [
    "MOMENT",
    "CreatedQuery",
    "Page",
    "PageQuery",
    "cursor_of",
    "moment_field",
    "opened",
    "page",
    "page_of",
]

_M = TypeVar("_M", bound=Model)

#: Keys a page looks at.
WINDOW = 100_000
#: Rows of a page: unless told otherwise, and at most.
SIZE, MOST = 50, 200
#: Between these a moment is one that the database and its arithmetic can take.
FIRST, LAST = (
    datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC),
)
MOMENT = "RFC 3339; UTC if it names no offset."


def _in_bounds(moment: datetime.datetime) -> None:
    if not FIRST <= moment <= LAST:
        raise serializers.ValidationError("This is not a time of this era.")


def moment_field(text: str, **more: Any) -> serializers.DateTimeField:
    """A moment that may be asked for."""
    given = {"required": False, "help_text": f"{text} {MOMENT}", "validators": [_in_bounds], **more}
    return serializers.DateTimeField(**given)


class PageQuery(serializers.Serializer[Any]):
    """What every list may be asked."""

    cursor = serializers.CharField(
        required=False, max_length=200, help_text="`next` of the page before."
    )
    size = serializers.IntegerField(
        required=False, default=SIZE, min_value=1, max_value=MOST, help_text="Rows of a page."
    )


class CreatedQuery(PageQuery):
    """The same, of rows that were made in a span."""

    created_after = moment_field("Made then or later.")
    created_before = moment_field("Made before then.")


@dataclass(frozen=True)
class Page(Generic[_M]):
    """Rows, and the cursor of the next ones; None at the end."""

    items: list[_M]
    next: str | None


@functools.cache
def page_of(shape: type[serializers.BaseSerializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The shape of a page of these."""
    members: dict[str, Any] = {
        "__doc__": "A page, newest first.",
        "items": shape(many=True),
        "next": serializers.CharField(
            allow_null=True,
            help_text="`cursor` of the next page; null at the end. A page may hold fewer rows than asked for, and "
            "still have one.",
        ),
    }
    name = shape.__name__.removesuffix("LineSerializer")
    return type(f"{name}PageSerializer", (serializers.Serializer,), members)


def page(rows: QuerySet[_M], asked: Mapping[str, Any], *, indexed: bool = False) -> Page[_M]:
    """A page of these rows. `indexed`: an index leads to them, so that all of the table may be looked at.

    Raises Invalid for a cursor that is not of a list of such rows.
    """
    table = rows.model._default_manager.all()  # noqa: SLF001 - Django's documented name
    low, high = _span(table, asked)
    if asked.get("cursor"):
        high = min(high, opened(rows.model, asked["cursor"]) - 1)
    floor = low if indexed else max(low, high - WINDOW)
    found = _created(rows, asked).filter(pk__gt=floor, pk__lte=high).order_by("-pk")
    items = list(found[: asked["size"] + 1])
    if len(items) > asked["size"]:
        items = items[: asked["size"]]
        return Page(items, cursor_of(rows.model, items[-1].pk))
    # Retention may have left nothing for a long way: begin where there is something again.
    rest = table.filter(pk__gt=low, pk__lte=floor).order_by("-pk").values_list("pk", flat=True)
    following = rest.first() if floor > low else None
    return Page(items, None if following is None else cursor_of(rows.model, following + 1))


def _span(table: QuerySet[Any], asked: Mapping[str, Any]) -> tuple[int, int]:
    """The keys after the first and up to the second may have been made in the span that is asked for."""
    low, high = 0, table.order_by("-pk").values_list("pk", flat=True).first() or 0
    if after := asked.get("created_after"):
        low, _ = split(table, after - SLACK)
    if before := asked.get("created_before"):
        _, last = split(table, before + SLACK)
        high = min(high, last)
    return low, high


def _created(rows: QuerySet[_M], asked: Mapping[str, Any]) -> QuerySet[_M]:
    span = {
        "created_at__gte": asked.get("created_after"),
        "created_at__lt": asked.get("created_before"),
    }
    return rows.filter(**{lookup: moment for lookup, moment in span.items() if moment})


def _signer(model: type[Model]) -> signing.Signer:
    return signing.Signer(salt=f"a2a.api/{model._meta.label_lower}")  # noqa: SLF001 - Django's documented name


def cursor_of(model: type[Model], key: int) -> str:
    """What a client says to have the rows before this key."""
    return _signer(model).sign_object(key)


def opened(model: type[Model], cursor: str) -> int:
    """The key in it. Raises Invalid for a cursor that is not of a list of such rows."""
    try:
        return int(_signer(model).unsign_object(cursor))
    except (signing.BadSignature, ValueError, TypeError):
        raise wrong("query", "cursor", "This is not a cursor of this list.") from None
