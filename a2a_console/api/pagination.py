"""Pagination of tables with millions of rows: newest first by primary key, never counted, never by offset.

A cursor is a signed primary key. Rows that are added while a client pages are newer than its cursor, so no row comes
twice and none is missed. Where no index serves the filters, a page searches WINDOW keys at most: it may hold fewer rows
than requested, or none, and still have a `next`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core import signing
from django.db.models import QuerySet
from rest_framework import ISO_8601, serializers
from rest_framework.fields import empty
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.exceptions import InvalidQuery
from a2a_console.search.key_ranges import SLACK, split

__all__ = [
    "MAX_KEY",
    "MOMENT",
    "CreatedQuerySerializer",
    "CursorField",
    "ItemsPagination",
    "KeyPagination",
    "MomentField",
    "NumberPagination",
    "NumberQuerySerializer",
    "PageQuerySerializer",
    "moment_field",
    "read_cursor",
    "sign_cursor",
]

#: The largest number of keys that a page searches.
WINDOW = 100_000
#: The number of rows of a page: default and maximum.
SIZE, MAX_SIZE = 50, 200
#: The bounds of a moment, between which the database can store it and compute with it.
FIRST, LAST = (
    datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC),
)
#: The largest primary key.
MAX_KEY = 2**63 - 1
MOMENT = "RFC 3339; UTC if it names no offset."


def _check_bounds(moment: datetime.datetime) -> None:
    if not FIRST <= moment <= LAST:
        raise serializers.ValidationError("Must be between 1970 and 9000.")


class MomentField(serializers.DateTimeField):
    """A moment in UTC, in the form of RFC 3339, whatever the settings of the project are."""

    format = ISO_8601
    timezone = datetime.UTC


def moment_field(text: str, **options: Any) -> serializers.DateTimeField:
    """Return the field of a moment in a request."""
    given: dict[str, Any] = {
        "required": False,
        "help_text": f"{text} {MOMENT}",
        "validators": [_check_bounds],
    }
    return MomentField(**(given | options))


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


def sign_cursor(salt: str, place: Any) -> str:
    """Return a cursor for a place in the lists of this salt. The place has to be JSON."""
    return signing.Signer(salt=f"a2a.api/{salt}").sign_object(place)


def read_cursor(salt: str, cursor: str) -> Any:
    """Return the place. Raises ValueError for a cursor that is not of such a list."""
    try:
        return signing.Signer(salt=f"a2a.api/{salt}").unsign_object(cursor)
    except (signing.BadSignature, TypeError):
        raise ValueError("no cursor of such a list") from None


class CursorField(serializers.CharField):
    """The key at which a bulk request continues, signed by the answer before."""

    def __init__(self, salt: str) -> None:
        super().__init__(required=False, max_length=200, help_text="`next` of the previous answer.")
        self._salt = salt

    def run_validation(self, data: Any = empty) -> int:
        """Return the key."""
        try:
            return int(read_cursor(self._salt, super().run_validation(data)))
        except (ValueError, TypeError):
            text = "This is not a cursor of such a request."
            raise serializers.ValidationError(text) from None


class PageQuerySerializer(serializers.Serializer[Any]):
    """The parameters of every list."""

    cursor = serializers.CharField(
        required=False, max_length=200, help_text="`next` of the previous page."
    )
    size = serializers.IntegerField(
        required=False, default=SIZE, min_value=1, max_value=MAX_SIZE, help_text="Rows per page."
    )


class CreatedQuerySerializer(PageQuerySerializer):
    """A page of rows that were created in a span."""

    created_after = moment_field("Created at or after this time.")
    created_before = moment_field("Created before this time.")


class NumberQuerySerializer(serializers.Serializer[Any]):
    """A page of rows that are numbered within their parent."""

    after = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=2**31 - 1,
        help_text="Only rows with a greater number.",
    )
    size = serializers.IntegerField(
        required=False, default=SIZE, min_value=1, max_value=MAX_SIZE, help_text="Rows per page."
    )


class ItemsPagination(BasePagination):
    """All items in one answer: `{"items": [...]}`."""

    #: The name of the OpenAPI component; empty = derived, such as `TaskPage` from `TaskLine`.
    schema_name: ClassVar[str] = ""
    description: ClassVar[str] = ""
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
        properties = {"items": schema, **following}
        return {"type": "object", "description": self.description, "properties": properties}


class KeyPagination(ItemsPagination):
    """Pages along the primary key; `next` is the cursor of the next page, null at the end."""

    description = "A page, newest first."
    next_schema = {
        "type": ["string", "null"],
        "description": "`cursor` of the next page; null at the end. A page may hold fewer rows than asked for, and still "
        "have one.",
    }

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return a page of the rows. Raises InvalidQuery for a cursor that is not of such a list."""
        query = view.validated_query
        indexed = view.indexed or not view.indexed_parameters.isdisjoint(query)
        return self.paginate(queryset, query, indexed=indexed)

    def paginate(
        self, rows: QuerySet[Any], query: Mapping[str, Any], *, indexed: bool
    ) -> list[Any]:
        """Return a page of the rows, and set `next`."""
        salt = rows.model._meta.label_lower  # noqa: SLF001 - Django's documented name
        table = rows.model._default_manager.all()  # noqa: SLF001 - as above
        low, high = _find_span(table, query)
        if query.get("cursor"):
            high = min(high, self.read_place(salt, query) - 1)
        floor = low if indexed else max(low, high - WINDOW)
        span = {"gte": query.get("created_after"), "lt": query.get("created_before")}
        created = {f"created_at__{lookup}": moment for lookup, moment in span.items() if moment}
        found = rows.filter(**created, pk__gt=floor, pk__lte=high).order_by("-pk")
        items = list(found[: query["size"] + 1])
        if len(items) > query["size"]:
            items = items[: query["size"]]
            self.next = sign_cursor(salt, items[-1].pk)
            return items
        # Retention may have left a large gap: the next page begins at the next row.
        older = table.filter(pk__gt=low, pk__lte=floor).order_by("-pk").values_list("pk", flat=True)
        following = older.first() if floor > low else None
        self.next = None if following is None else sign_cursor(salt, following + 1)
        return items

    def read_place(self, salt: str, query: Mapping[str, Any]) -> int:
        """Return the key in the cursor of the query. Raises InvalidQuery."""
        try:
            return int(read_cursor(salt, query["cursor"]))
        except (ValueError, TypeError):
            raise InvalidQuery({"cursor": "This is not a cursor of this list."}) from None


class NumberPagination(ItemsPagination):
    """Pages of rows that are numbered within their parent, in order; `next` is the number to continue after."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the first rows after the number in the query, and set `next` if there are more."""
        after, size = view.validated_query["after"], view.validated_query["size"]
        found = list(queryset.filter(number__gt=after).order_by("number")[: size + 1])
        self.next = found[size - 1].number if len(found) > size else None
        return found[:size]


def _find_span(table: QuerySet[Any], query: Mapping[str, Any]) -> tuple[int, int]:
    """Return two keys: rows created in the span of the query have keys after the first and up to the second."""
    low, high = 0, table.order_by("-pk").values_list("pk", flat=True).first() or 0
    if after := query.get("created_after"):
        low, _ = split(table, after - SLACK)
    if before := query.get("created_before"):
        _, last = split(table, before + SLACK)
        high = min(high, last)
    return low, high
