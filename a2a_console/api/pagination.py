"""Pagination of tables with millions of rows: newest first by primary key, never counted, never by offset.

A cursor is a signed primary key. Rows that are added while a client pages are newer than its cursor, so no row comes
twice and none is missed. Where no index serves the filters, a page searches WINDOW keys at most: it may hold fewer rows
than requested, or none, and still have a `next`.
"""

from __future__ import annotations

import datetime
from typing import Any, ClassVar

from django.core import signing
from django.core.validators import MaxValueValidator, MinValueValidator
from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.search.key_ranges import find_next, find_span
from a2a_console.times import MomentField

__all__ = [
    "MAX_KEY",
    "MOMENT",
    "CreatedQuerySerializer",
    "CursorField",
    "CursorPagination",
    "ItemsPagination",
    "KeyPagination",
    "NumberPagination",
    "NumberQuerySerializer",
    "PageQuerySerializer",
    "moment_field",
    "sign_cursor",
]

#: The largest number of keys that a page searches.
WINDOW = 100_000
#: The number of rows of a page: default and maximum.
SIZE, MAX_SIZE = 50, 200
#: The bounds of a moment, between which the database can store it and compute with it.
FIRST, LAST = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1970, 9000))
#: The largest primary key.
MAX_KEY = 2**63 - 1
MOMENT = "RFC 3339; UTC if it names no offset."


def moment_field(text: str, **options: Any) -> serializers.DateTimeField:
    """Return the field of a moment in a request."""
    bounds = [MinValueValidator(FIRST), MaxValueValidator(LAST), *options.pop("validators", ())]
    return MomentField(required=False, help_text=f"{text} {MOMENT}", validators=bounds, **options)


def agent_field() -> serializers.CharField:
    """Return the filter by agent."""
    return serializers.CharField(required=False, max_length=64, help_text="The slug of an agent.")


def tenant_field() -> serializers.CharField:
    """Return the filter by exact tenant."""
    return serializers.CharField(
        required=False,
        max_length=256,
        allow_blank=True,
        help_text="The exact name of a tenant; empty = rows without a tenant.",
    )


def key_field() -> serializers.IntegerField:
    """Return the filter by the primary key of a related row."""
    return serializers.IntegerField(required=False, min_value=1, max_value=MAX_KEY)


def _make_signer(request: Request) -> signing.Signer:
    """Return the signer of the cursors of one list, or of one bulk request: of one path."""
    return signing.Signer(salt=f"a2a.api{request.path}")


def sign_cursor(request: Request, place: Any) -> str | None:
    """Return the cursor for a place, which has to be JSON; None if the place is None."""
    return None if place is None else _make_signer(request).sign_object(place)


class CursorField(serializers.CharField):
    """The place at which a list or a bulk request continues, signed by the answer before."""

    def __init__(self) -> None:
        super().__init__(required=False, max_length=200, help_text="`next` of the previous answer.")

    def run_validation(self, data: Any = empty) -> Any:
        """Return the place."""
        text = super().run_validation(data)
        try:
            return _make_signer(self.context["request"]).unsign_object(text)
        except (signing.BadSignature, TypeError):
            raise serializers.ValidationError("This is not a cursor of this path.") from None


class SizeQuerySerializer(serializers.Serializer[Any]):
    """The number of rows of a page."""

    size = serializers.IntegerField(
        required=False, default=SIZE, min_value=1, max_value=MAX_SIZE, help_text="Rows per page."
    )


class PageQuerySerializer(SizeQuerySerializer):
    """The parameters of every list."""

    cursor = CursorField()


class CreatedQuerySerializer(PageQuerySerializer):
    """A page of rows that were created in a span."""

    created_after = moment_field("Created at or after this time.")
    created_before = moment_field("Created before this time.")


class NumberQuerySerializer(SizeQuerySerializer):
    """A page of rows that are numbered within their parent."""

    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Only rows with a greater number.",
    )


class ItemsPagination(BasePagination):
    """All items in one answer: `{"items": [...]}`."""

    #: The schema of `next`; None = there is no `next`.
    next_schema: ClassVar[dict[str, Any] | None] = None
    next: Any = None

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return all items."""
        return list(queryset)

    def get_paginated_response(self, data: Any) -> Response:
        """Return the items and the cursor of the next page."""
        following = {} if self.next_schema is None else {"next": self.next}
        return Response({"items": data, **following})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the answer."""
        following = {} if self.next_schema is None else {"next": self.next_schema}
        return {"type": "object", "properties": {"items": schema, **following}}


class CursorPagination(ItemsPagination):
    """The base of pages that begin at a signed place; `next` is the cursor of the next page, null at the end."""

    next_schema = {
        "type": ["string", "null"],
        "description": "`cursor` of the next page; null at the end. A page may hold fewer rows than asked for, and still "
        "have one.",
    }

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return a page of the rows, and set `next`."""
        items, following = self.find_page(queryset, view)
        self.next = sign_cursor(request, following)
        return items

    def find_page(self, rows: Any, view: Any) -> tuple[list[Any], Any]:
        """Return the rows of the page that the query names, and the place of the next page; None = the end."""
        raise NotImplementedError


class KeyPagination(CursorPagination):
    """Pages along the primary key, newest first."""

    def find_page(self, rows: Any, view: Any) -> tuple[list[Any], Any]:
        """Return the rows before the key in the query, and the key before which the next page begins."""
        query, table = view.given, rows.model._default_manager.all()  # noqa: SLF001 - Django's documented name
        after, before, size = query.get("created_after"), query.get("created_before"), query["size"]
        low, high = find_span(table, after, before)
        high = min(high, query.get("cursor", high + 1) - 1)
        indexed = view.indexed or not view.indexed_parameters.isdisjoint(query)
        floor = low if indexed else max(low, high - WINDOW)
        span = {"created_at__gte": after, "created_at__lt": before}
        created = {lookup: moment for lookup, moment in span.items() if moment}
        found = rows.filter(**created, pk__gt=floor, pk__lte=high).order_by("-pk")
        items = list(found[: size + 1])
        following = items[size - 1].pk if len(items) > size else find_next(table, low, floor)
        return items[:size], following


class NumberPagination(ItemsPagination):
    """Pages of rows that are numbered within their parent, in order; `next` is the number to continue after."""

    next_schema = {
        "type": ["integer", "null"],
        "description": "`after` of the next page; null if there are no more now.",
    }

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the first rows after the number in the query, and set `next` if there are more."""
        after, size = view.given["after"], view.given["size"]
        found = list(queryset.filter(number__gt=after).order_by("number")[: size + 1])
        self.next = found[size - 1].number if len(found) > size else None
        return found[:size]
