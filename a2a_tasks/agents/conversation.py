"""The conversation of a turn: the memory that its agent keeps from task to task, and the messages of all its tasks.

Changes are kept here until the turn ends; the host writes them with the state in which it ends. The subclasses of the host
(execution/sources, execution/child) read from the store. docs/agents/questions.md is the guide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from a2a_tasks.agents.author_errors import Unused, keepable
from a2a_tasks.agents.faults import AgentError
from a2a_tasks.agents.later import Later
from a2a_tasks.conf import conf
from a2a_tasks.conversation_changes import (
    ConversationChanged,
    ConversationChanges,
    ListChange,
    MemoryChange,
    StoredItems,
    StoredValue,
    ValueKind,
)
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import Message

__all__ = ["Conversation", "ConversationValues"]

T = TypeVar("T")
#: Longest key, in characters.
MAX_KEY_LENGTH = 200
#: Most keys of a conversation: values and lists together.
MAX_KEYS = 256
#: Most bytes of one item, of all items of a list, and of all changes of a turn.
MAX_ITEM_BYTES, MAX_LIST_BYTES, MAX_CHANGED_BYTES = 1024 * 1024, 16 * 1024 * 1024, 8 * 1024 * 1024
#: Most messages of `history`.
MAX_HISTORY = 500


@dataclass(slots=True)
class _StoredValue:
    """A key of the memory, as this turn knows it."""

    #: The version that was read; 0 = there was none.
    version: int
    #: The new value, or one to be deleted; None = unchanged.
    change: MemoryChange | None = None

    @property
    def size(self) -> int:
        return len(self.change.value or b"") if self.change else 0

    @property
    def is_there(self) -> bool:
        return self.change.value is not None if self.change else bool(self.version)


@dataclass(slots=True)
class _List:
    """A list as this turn sees it: the stored items, the number of them that stay, and the new ones."""

    stored: StoredItems
    kept: int
    #: Bytes of the items that stay.
    kept_size: int
    added: list[str] = field(default_factory=list)
    #: Bytes of the new items.
    added_size: int = 0

    @property
    def count(self) -> int:
        return self.kept + len(self.added)

    @property
    def is_changed(self) -> bool:
        return bool(self.added) or self.kept < self.stored.length


class _Change(Later[T], Generic[T]):
    """A change of the conversation: without `await` or `now` it does nothing, which is reported."""

    def __init__(
        self,
        load: Callable[[], Awaitable[T]],
        loop: asyncio.AbstractEventLoop,
        used: Callable[[Any], None],
    ) -> None:
        async def change() -> T:
            used(self)
            return await load()

        super().__init__(change, loop)


class Conversation:
    """The conversation (the context) of a turn. This base class keeps it in memory only: it is for tests of agents.

    `Conversation({"name": "Ada"}, {"log": [1, 2]})` is one with a value and a list. Synchronous agents write `.now()`
    instead of `await`.
    """

    def __init__(
        self,
        memory: Mapping[str, Any] | None = None,
        items: Mapping[str, Iterable[Any]] | None = None,
        history: Sequence[Message] = (),
    ) -> None:
        self._stored = {key: StoredValue(1, *_encode(key, v)) for key, v in (memory or {}).items()}
        self._stored_items = {
            key: [_encode_item(key, item) for item in given] for key, given in (items or {}).items()
        }
        self._stored_history = history
        self._values: dict[str, _StoredValue] = {}
        self._lists: dict[str, _List] = {}
        #: The changes of an agent in another process.
        self._adopted: ConversationChanges | None = None
        #: The number of keys that there are in the store, once that was asked for.
        self._keys: int | None = None
        self._one_at_a_time = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop
        self._unused = Unused()
        #: True if a question was asked before the conversation was used: it may be written already, too late for changes.
        self._is_late = False
        #: True if the turn has read or changed something: its question is then written with its changes.
        self.is_used = False

    def join(self, loop: asyncio.AbstractEventLoop, unused: Unused) -> None:
        """Serve a turn on this event loop."""
        self._loop, self._unused = loop, unused

    # --- for agents -------------------------------------------------------------------------

    @property
    def memory(self) -> ConversationValues:
        """Return the values that are kept by key."""
        return ConversationValues(self)

    def items(self, key: str, limit: int | None = None) -> Later[list[Any]]:
        """Return the items of a list, oldest first; with a limit, the last so many: `await conversation.items("log")`."""
        _check_key(key)
        return Later(lambda: self._in_turn(lambda: self._items(key, limit)), self._loop)

    def append(self, key: str, *items: Any) -> Later[None]:
        """Append JSON values to a list: `await conversation.append("log", item)`. The first item creates the list.

        Raises TypeError for other values, and ValueError for too many or too large items.
        """
        _check_key(key)
        added = [_encode_item(key, item) for item in items]
        return self._change(lambda: self._append(key, added), "append")

    def pop(self, key: str) -> Later[Any]:
        """Take the last item off a list and return it; None if the list is empty: `await conversation.pop("log")`."""
        _check_key(key)
        return self._change(lambda: self._pop(key), "pop")

    def clear(self, key: str) -> Later[None]:
        """Remove all items of a list: `await conversation.clear("log")`."""
        _check_key(key)
        return self._change(lambda: self._clear(key), "clear")

    def history(self, limit: int = 50) -> Later[list[Message]]:
        """Return the last messages of all tasks up to this turn's, oldest first: `await conversation.history()`.

        Answers of agents are among them: status messages, and the text of artifacts as messages of the role agent.
        """
        if not 1 <= limit <= MAX_HISTORY:
            raise ValueError(f"the limit of a history is 1 to {MAX_HISTORY}, not {limit}")
        return Later(lambda: self.read_history(limit), self._loop)

    # --- reads of the host, by subclasses from the store -----------------------------------

    async def read_value(self, key: str) -> StoredValue:
        """Read a value."""
        return self._stored.get(key, StoredValue())

    async def read_version(self, key: str) -> int:
        """Read the version of a value; 0 = there is none."""
        return self._stored.get(key, StoredValue()).version

    async def read_items(self, key: str, skip: int, limit: int | None) -> StoredItems:
        """Read a list: of its items `limit` (None = all) before the last `skip`."""
        found = self._stored_items.get(key, [])
        end = max(0, len(found) - skip)
        begin = 0 if limit is None else max(0, end - limit)
        size = sum(map(_size, found))
        return StoredItems(int(bool(found)), len(found), size, found[begin:end])

    async def count_keys(self) -> int:
        """Count the keys that there are: values, and lists with items."""
        return len(self._stored) + sum(map(bool, self._stored_items.values()))

    async def read_history(self, limit: int) -> list[Message]:
        """Read the last messages up to this turn's."""
        return list(self._stored_history[-limit:])

    # --- for the host -------------------------------------------------------------------------

    def adopt(self, changes: ConversationChanges | None) -> None:
        """Take over the changes of an agent in another process."""
        self._adopted = changes

    def note_word(self, *, asks: bool) -> None:
        """Note that the agent said something; `asks`: it asks the client, which may be written at once."""
        self._is_late = asks and not self.is_used

    def list_changes(self) -> ConversationChanges | None:
        """Return what the turn has changed; None = nothing."""
        if self._adopted:
            return self._adopted
        values = tuple(value.change for value in self._values.values() if value.change)
        lists = tuple(
            ListChange(
                key,
                known.stored.version,
                kept=known.kept,
                trims=known.kept < known.stored.length,
                added=tuple(known.added),
                size=known.kept_size + known.added_size,
            )
            for key, known in self._lists.items()
            if known.is_changed
        )
        return ConversationChanges(values, lists) if values or lists else None

    def carry_on(self, history: Sequence[Message], *, changed: bool = True) -> Conversation:
        """Return the conversation as the next turn finds it, with or without the changes of this one: for tests of agents."""
        made = Conversation(history=history)
        made._stored, made._stored_items = dict(self._stored), dict(self._stored_items)
        changes = (self.list_changes() if changed else None) or ConversationChanges()
        for key, expected, kind, value in changes.memory:
            made._stored.pop(key, None)
            if value is not None:
                made._stored[key] = StoredValue(expected + 1, kind, value)
        for change in changes.lists:
            kept = made._stored_items.get(change.key, [])[: change.kept]
            made._stored_items[change.key] = [*kept, *change.added]
        return made

    # --- the work -----------------------------------------------------------------------------

    def _change(self, work: Callable[[], Awaitable[T]], name: str) -> Later[T]:
        def check() -> Awaitable[T]:
            if self._is_late:
                raise RuntimeError(
                    f"conversation.{name} comes too late: the question before it may be written already. "
                    "Change the conversation before you ask."
                )
            return self._in_turn(work)

        change = _Change(check, self._loop, self._unused.note_use)
        return self._unused.watch(change, f"await turn.conversation.{name}(...)", depth=3)

    async def _in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do one thing after the other: each sees what those before it have changed."""
        async with self._one_at_a_time:
            self.is_used = True
            try:
                return await work()
            except ConversationChanged as fault:
                raise AgentError(str(fault)) from fault

    async def _get(self, key: str, default: Any) -> Any:
        known = self._values.get(key)
        if known and known.change:
            found = StoredValue(known.version, known.change.kind, known.change.value or b"")
            return default if known.change.value is None else _decode(found)
        found = await self.read_value(key)
        if known and known.version != found.version:
            raise ConversationChanged(key)
        self._values[key] = known or _StoredValue(found.version)
        return _decode(found) if found.version else default

    async def _put(self, key: str, kind: str, value: bytes | None) -> None:
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = _StoredValue(await self.read_version(key))
        if value is None and not known.version:
            known.change = None
            return
        grown = self._measure_changes() - known.size + len(value or b"")
        _check_limit(grown, MAX_CHANGED_BYTES, "bytes are changed in one turn")
        if value is not None and not known.is_there:
            await self._check_room()
        known.change = MemoryChange(key, known.version, kind, value)

    async def _items(self, key: str, limit: int | None) -> list[Any]:
        known = await self._list(key)
        new = known.added if limit is None else known.added[max(0, len(known.added) - limit) :]
        wanted = None if limit is None else limit - len(new)
        old: Sequence[str] = ()
        if known.kept and wanted != 0:
            old = await self._read_last_stored(key, known, wanted)
        return [msgspec.json.decode(item) for item in (*old, *new)]

    async def _append(self, key: str, added: Sequence[str]) -> None:
        known = await self._list(key)
        size = sum(map(_size, added))
        _check_limit(
            known.count + len(added),
            int(conf.MEMORY_MAX_ITEMS),
            f"items are in the list {key!r}",
        )
        _check_limit(
            known.kept_size + known.added_size + size,
            MAX_LIST_BYTES,
            f"bytes are in the list {key!r}",
        )
        _check_limit(
            self._measure_changes() + size, MAX_CHANGED_BYTES, "bytes are changed in one turn"
        )
        if added and not known.count:
            await self._check_room()
        known.added += added
        known.added_size += size

    async def _pop(self, key: str) -> Any:
        known = await self._list(key)
        if known.added:
            last = known.added.pop()
            known.added_size -= _size(last)
            return msgspec.json.decode(last)
        if not known.kept:
            return None
        (last,) = await self._read_last_stored(key, known, 1)
        known.kept -= 1
        known.kept_size -= _size(last)
        return msgspec.json.decode(last)

    async def _clear(self, key: str) -> None:
        known = await self._list(key)
        known.kept = known.kept_size = known.added_size = 0
        known.added.clear()

    async def _list(self, key: str) -> _List:
        if key not in self._lists:
            stored = await self.read_items(key, 0, 0)
            self._lists[key] = _List(stored, stored.length, stored.size)
        return self._lists[key]

    async def _read_last_stored(self, key: str, known: _List, limit: int | None) -> Sequence[str]:
        """Read the last of the stored items that stay."""
        found = await self.read_items(key, known.stored.length - known.kept, limit)
        if found.version != known.stored.version:
            raise ConversationChanged(key)
        return found.items

    async def _check_room(self) -> None:
        """Check that there may be one more key."""
        if self._keys is None:
            self._keys = await self.count_keys()
        values = sum(one.is_there - bool(one.version) for one in self._values.values())
        lists = sum(bool(one.count) - bool(one.stored.length) for one in self._lists.values())
        _check_limit(self._keys + values + lists + 1, MAX_KEYS, "keys are in the conversation")

    def _measure_changes(self) -> int:
        values = sum(value.size for value in self._values.values())
        return values + sum(known.added_size for known in self._lists.values())


class ConversationValues:
    """The values of a conversation by key: JSON values, texts, bytes."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def get(self, key: str, default: Any = None) -> Later[Any]:
        """Return the value of a key: `await turn.conversation.memory.get("name")`. To change it, set it."""
        _check_key(key)
        inner = self._conversation
        return Later(lambda: inner._in_turn(lambda: inner._get(key, default)), inner._loop)  # noqa: SLF001

    def set(self, key: str, value: Any) -> Later[None]:
        """Set the value of a key: `await turn.conversation.memory.set("name", "Ada")`.

        Raises TypeError for a value that is neither JSON nor bytes, and ValueError for one that is too large.
        """
        _check_key(key)
        kind, stored = _encode(key, value)
        _check_limit(
            len(stored),
            int(conf.MEMORY_MAX_BYTES),
            f"bytes are in the value of {key!r}",
        )
        inner = self._conversation
        return inner._change(lambda: inner._put(key, kind, stored), "memory.set")  # noqa: SLF001

    def delete(self, key: str) -> Later[None]:
        """Remove the value of a key, if there is one: `await turn.conversation.memory.delete("name")`."""
        _check_key(key)
        inner = self._conversation
        return inner._change(lambda: inner._put(key, ValueKind.JSON, None), "memory.delete")  # noqa: SLF001


def _check_key(key: str) -> None:
    if not key or len(key) > MAX_KEY_LENGTH or not key.isprintable():
        raise ValueError(f"a key is 1 to {MAX_KEY_LENGTH} printable characters: {key!r}")


def _check_limit(count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(f"at most {most} {what}, not {count}")


def _size(item: str) -> int:
    return len(item.encode())


def _encode(key: str, value: Any) -> tuple[ValueKind, bytes]:
    if isinstance(value, bytes | bytearray | memoryview):
        return ValueKind.BYTES, bytes(value)
    value = keepable(f"conversation.memory[{key!r}]", value)
    if isinstance(value, str):
        return ValueKind.TEXT, value.encode()
    return ValueKind.JSON, write(value)


def _decode(stored: StoredValue) -> Any:
    match stored.kind:
        case ValueKind.BYTES:
            return stored.value
        case ValueKind.TEXT:
            return stored.value.decode()
        case _:
            return msgspec.json.decode(stored.value)


def _encode_item(key: str, item: Any) -> str:
    stored = write(keepable(f"an item of {key!r}", item))
    _check_limit(len(stored), MAX_ITEM_BYTES, f"bytes are in an item of {key!r}")
    return stored.decode()
