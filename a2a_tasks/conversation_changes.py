"""Values of a conversation that go between agent, runner and store: stored ones, and the changes of a turn."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "ConversationChanged",
    "ConversationChanges",
    "ListChange",
    "MemoryChange",
    "StoredItems",
    "StoredValue",
    "ValueKind",
]


class ValueKind(enum.StrEnum):
    """The kind of a value in the memory of a conversation."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"

    @classmethod
    def choices(cls) -> list[tuple[str, str]]:
        """Return the choices of a column."""
        return [(kind.value, kind.value) for kind in cls]


class ConversationChanged(Exception):
    """Another run changed what this one has read or wants to change; nothing was written. The text is for the client."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Another task of this conversation has changed {key!r} meanwhile. Send the message again."
        )
        self.key = key


class StoredValue(NamedTuple):
    """A value as it is stored. Version 0 = there is none."""

    version: int = 0
    kind: str = ValueKind.JSON
    value: bytes = b"null"


class StoredItems(NamedTuple):
    """A part of a list: its version (0 = there is none), its number of items, their bytes, and the JSON of some, in order."""

    version: int = 0
    length: int = 0
    size: int = 0
    items: Sequence[str] = ()


class MemoryChange(NamedTuple):
    """A new value of a key, or None to delete it, if the key has the expected version (0 = it must not exist)."""

    key: str
    expected: int
    kind: str
    value: bytes | None


class ListChange(NamedTuple):
    """A change of a list of the expected version (0 = it must not exist)."""

    key: str
    expected: int
    #: The number of old items that stay.
    kept: int
    #: True if old items after these are removed.
    trims: bool
    #: JSON of each item that is appended.
    added: Sequence[str]
    #: Bytes of all items afterwards.
    size: int


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """All changes of a turn."""

    memory: Sequence[MemoryChange] = ()
    lists: Sequence[ListChange] = ()

    @property
    def size(self) -> int:
        """The bytes to be written."""
        values = sum(len(change.value or b"") for change in self.memory)
        return values + sum(len(item) for change in self.lists for item in change.added)
