"""The memory of a conversation for the page of its context: values and lists, cut by the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import BinaryField, F
from django.db.models.functions import Left, Substr
from django.template.defaultfilters import filesizeformat

from a2a_console.admin.widgets.formatting import escape_name, sendable
from a2a_console.times import moment
from a2a_tasks.conversation_changes import ValueKind
from a2a_tasks.models import Context, ConversationItem, ConversationList, ConversationMemory
from a2a_tasks.store.backend.statements import Bytes

__all__ = ["MemoryPage", "read_memory"]

#: The largest numbers of values and of lists on the page.
VALUES, LISTS = 100, 50
#: Bytes of a value, and characters of an item, that are read and shown; and the number of items of a list.
START, ITEMS = 200, 5


class ShownItem(NamedTuple):
    """An item of a list: its number, and the beginning of its JSON."""

    number: int
    start: str
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class ShownKey:
    """A key with its value, or its list."""

    key: str
    size: str
    #: The run that wrote it last.
    version: int
    updated: str
    kind: str = ""
    start: str = ""
    is_cut: bool = False
    count: int = 0
    #: The last items, the newest first.
    items: Sequence[ShownItem] = ()


@dataclass(frozen=True, kw_only=True)
class MemoryPage:
    """The keys of a conversation, and whether there are more than are shown."""

    values: Sequence[ShownKey]
    lists: Sequence[ShownKey]
    has_more: bool
    most_values: int = VALUES
    most_lists: int = LISTS


def read_memory(context: Context) -> MemoryPage:
    """Read the keys of a conversation."""
    values, lists = _values(context), _lists(context)
    has_more = len(values) > VALUES or len(lists) > LISTS
    return MemoryPage(values=values[:VALUES], lists=lists[:LISTS], has_more=has_more)


def _values(context: Context) -> list[ShownKey]:
    rows = ConversationMemory.objects.filter(context=context).order_by("key")
    start = Substr("value", 1, START, output_field=BinaryField())
    columns = ("key", "version", "kind", "updated_at", start, Bytes("value"))
    return [
        ShownKey(
            **_describe(key, version, at, size),
            kind=kind,
            start=_start(kind, bytes(value)),
            is_cut=size > START,
        )
        for key, version, kind, at, value, size in rows.values_list(*columns)[: VALUES + 1]
    ]


def _lists(context: Context) -> list[ShownKey]:
    rows = ConversationList.objects.filter(context=context).order_by("key")
    found = list(
        rows.values_list("pk", "key", "version", "updated_at", "count", "size")[: LISTS + 1]
    )
    items = _last_items([pk for pk, *_ in found])
    return [
        ShownKey(**_describe(key, version, at, size), count=count, items=items.get(pk, ()))
        for pk, key, version, at, count, size in found
    ]


def _last_items(lists: Sequence[int]) -> Mapping[int, Sequence[ShownItem]]:
    rows = ConversationItem.objects.filter(list__in=lists, number__gt=F("list__count") - ITEMS)
    columns = ("list_id", "number", Left("value", START + 1))
    found = defaultdict(list)
    for pk, number, start in rows.order_by("list_id", "-number").values_list(*columns):
        found[pk].append(ShownItem(number, sendable(start[:START]), len(start) > START))
    return found


def _describe(key: str, version: int, at: datetime, size: int) -> dict[str, Any]:
    return {
        "key": escape_name(key),
        "version": version,
        "updated": moment(at),
        "size": filesizeformat(size),
    }


def _start(kind: str, value: bytes) -> str:
    """Return the beginning of a value as text; bytes in hexadecimal."""
    if kind == ValueKind.BYTES:
        return value.hex(" ")
    return value.decode(errors="ignore").replace("\x00", "\\x00")
