"""Reading what agents keep in a conversation, and what was said in it; and removing the lists of removed conversations.

Changes are written with the batch that ends a run (`append`). A run reaches the conversation of its own task and no other.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber

from a2a_tasks.conversation_changes import StoredItems, StoredValue
from a2a_tasks.models import (
    Artifact,
    Context,
    ConversationItem,
    ConversationList,
    ConversationMemory,
    Event,
    Message,
    Task,
)
from a2a_tasks.protocol import values
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind
from a2a_tasks.protocol.values import Role
from a2a_tasks.store.backend.statements import Bytes
from a2a_tasks.store.folding import assemble_growing

__all__ = [
    "HISTORY_BYTES",
    "count_context_rows",
    "count_keys",
    "read_history",
    "read_items",
    "read_value",
    "read_version",
    "sweep_lists",
]

#: Most bytes of the messages of a history; older ones are left out.
HISTORY_BYTES = 8 * 1024 * 1024
#: Most artifacts whose texts are in a history.
MAX_ARTIFACTS = 10_000
#: The number of a status message: it is the last of its task.
LAST = math.inf
_artifact = msgspec.json.Decoder(values.Artifact).decode


def _context_of(task: int) -> QuerySet[Context]:
    return Context.objects.filter(tasks=task)


def read_value(task: int, key: str) -> StoredValue:
    """Read a value of the memory of the task's conversation."""
    rows = ConversationMemory.objects.filter(context__in=_context_of(task), key=key)
    row = rows.values_list("version", "kind", "value").first()
    return StoredValue() if row is None else StoredValue(row[0], row[1], bytes(row[2]))


def read_version(task: int, key: str) -> int:
    """Read the version of a value; 0 = there is none."""
    rows = ConversationMemory.objects.filter(context__in=_context_of(task), key=key)
    return rows.values_list("version", flat=True).first() or 0


def read_items(task: int, key: str, skip: int, limit: int | None) -> StoredItems:
    """Read a list: of its items `limit` (None = all) before the last `skip`. The version is that of these items."""
    lists = ConversationList.objects.filter(context__in=_context_of(task), key=key)
    head = lists.values_list("version", "count", "size")
    if limit == 0:
        return StoredItems(*(head.first() or ()))
    # One statement, so that the items are those of the version.
    end = F("count") - skip
    wanted = Q(items__number__lte=end)
    if limit is not None:
        wanted &= Q(items__number__gt=end - limit)
    columns = ("version", "count", "size", "items__value")
    rows = list(lists.filter(wanted).order_by("items__number").values_list(*columns))
    if not rows:
        return StoredItems(*(head.first() or ()))
    version, length, size, _ = rows[0]
    return StoredItems(version, length, size, [row[3] for row in rows])


def count_keys(task: int) -> int:
    """Count the keys of the task's conversation: values, and lists with items."""
    context = _context_of(task)
    memory = ConversationMemory.objects.filter(context__in=context)
    lists = ConversationList.objects.filter(context__in=context, count__gt=0)
    return memory.count() + lists.count()


# --- history --------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """The place of a message in a conversation: when its turn began, its task, its number; and where its body is."""

    at: datetime.datetime
    task: int
    number: float
    size: int
    #: The position of an artifact; None = it is a message.
    position: int | None = None


def read_history(task: int, input_number: int, limit: int) -> list[str]:
    """Read the last messages of the conversation up to this one of the task, oldest first, as JSON.

    Each message of the client is followed by the answers to it: questions and closing words, and the text of artifacts as
    messages of the agent. Of more than HISTORY_BYTES together the oldest are left out, and an artifact that is larger.
    """
    return _History.at(task, input_number, limit).read()


@dataclass(frozen=True, slots=True)
class _History:
    """The tasks of a conversation, as far as they belong to a history."""

    tasks: Mapping[int, Task]
    #: The number in each task from which on everything came later; most tasks have none.
    ends: Mapping[int, int]
    limit: int

    @classmethod
    def at(cls, task: int, input_number: int, limit: int) -> _History:
        """Return the history up to that message."""
        own = Message.objects.get(task_id=task, number=input_number)
        columns = ("public_id", "context", "context__public_id", "state", "is_task")
        rows = Task.objects.filter(context__in=_context_of(task)).select_related("context")
        newest = list(rows.only(*columns).order_by("-status_at", "-pk")[:limit])
        tasks = {row.pk: row for row in (*rows.only(*columns).filter(pk=task), *newest)}
        later = Message.objects.filter(task_id__in=tasks, role=Role.USER)
        later = later.filter(created_at__gt=own.created_at).order_by()
        firsts = later.values("task_id").annotate(first=Min("number"))
        ends = dict(firsts.values_list("task_id", "first"))
        return cls(tasks, ends | {task: input_number + 1}, limit)

    def read(self) -> list[str]:
        """Return the messages."""
        entries, left = [], HISTORY_BYTES
        for entry in sorted(self._list_entries(), reverse=True)[: self.limit]:
            size = entry.size or _size_of_pieces(entry)
            if size > HISTORY_BYTES:
                continue
            left -= size
            if left < 0:
                break
            entries.append(entry)
        bodies = {**self._read_messages(entries), **self._read_artifacts(entries)}
        return [bodies[entry] for entry in reversed(entries) if entry in bodies]

    def _list_entries(self) -> Iterator[_Entry]:
        messages = Message.objects.filter(self._in_time("number"), task_id__in=self.tasks)
        columns = ("task_id", "number", "role", "created_at", Bytes("body"))
        rows = list(
            messages.order_by("-created_at", "-task_id", "-number").values_list(*columns)[
                : self.limit
            ]
        )
        turns: dict[int, list[tuple[int, datetime.datetime]]] = defaultdict(list)
        for task, number, role, at, _ in rows:
            if role == Role.USER:
                turns[task].append((number, at))

        def make_entries(
            task: int, number: float, size: int, position: int | None = None
        ) -> Iterator[_Entry]:
            begun = [turn for turn in turns[task] if turn[0] <= number]
            if begun:
                yield _Entry(max(begun)[1], task, number, size, position)

        for task, number, _, _, size in rows:
            yield from make_entries(task, number, size)
        for task, size in self._statuses():
            yield from make_entries(task, LAST, size)
        for task, number, position, size in self._artifacts(list(turns)):
            yield from make_entries(task, number, size, position)

    def _in_time(self, column: str) -> Q:
        """Select what did not come later."""
        late = Q()
        for task, number in self.ends.items():
            late |= Q(task_id=task, **{f"{column}__gte": number})
        return ~late

    def _statuses(self) -> Sequence[tuple[int, int]]:
        """Return (task, bytes) of the messages with which tasks ended, or wait for the client."""
        shown = [key for key, row in self.tasks.items() if row.is_task and key not in self.ends]
        rows = Task.objects.filter(pk__in=shown, state__in=TERMINAL | INTERRUPTED)
        return list(rows.exclude(status_message="").values_list("pk", Bytes("status_message")))

    def _artifacts(self, tasks: Collection[int]) -> QuerySet[Any, tuple[int, int, int, int]]:
        """Select (task, number, position, bytes) of artifacts; those that are in pieces have no bytes yet."""
        rank = Window(RowNumber(), partition_by="task_id", order_by="-first_event")
        rows = Artifact.objects.filter(self._in_time("first_event"), task_id__in=tasks)
        rows = rows.annotate(rank=rank).filter(rank__lte=self.limit).order_by("-task_id")
        columns = ("task_id", "first_event", "position", Bytes("body"))
        return rows.values_list(*columns)[:MAX_ARTIFACTS]

    def _read_messages(self, entries: Collection[_Entry]) -> Mapping[_Entry, str]:
        places = {(entry.task, entry.number): entry for entry in entries if entry.position is None}
        messages = [(task, int(number)) for task, number in places if number != LAST]
        rows = Message.objects.filter(_at_places("number", messages))
        texts = {
            (task, number): body
            for task, number, body in rows.values_list("task_id", "number", "body")
        }
        ended = Task.objects.filter(pk__in=[task for task, number in places if number == LAST])
        closing = {(task, LAST): body for task, body in ended.values_list("pk", "status_message")}
        return {places[place]: body for place, body in (texts | closing).items() if body}

    def _read_artifacts(self, entries: Collection[_Entry]) -> Mapping[_Entry, str]:
        places = {
            (entry.task, entry.position): entry for entry in entries if entry.position is not None
        }
        rows = Artifact.objects.filter(_at_places("position", places))
        columns = ("task_id", "position", "artifact_id", "first_event", "body")
        found = {}
        for task, position, artifact_id, first, body in rows.values_list(*columns):
            whole = body or assemble_growing(task, {artifact_id: first})[artifact_id]
            if message := self._to_message(task, _artifact(whole)):
                found[places[task, position]] = message
        return found

    def _to_message(self, task: int, artifact: values.Artifact) -> str:
        """Return the text of an artifact as a message of the agent; empty if it has none."""
        texts = tuple(part for part in artifact.parts if isinstance(part.text, str))
        if not texts:
            return ""
        row = self.tasks[task]
        message = values.Message(
            message_id=f"{row.public_id}/{artifact.artifact_id}",
            context_id=row.context.public_id,
            task_id=row.public_id,
            role=Role.AGENT,
            parts=texts,
        )
        return write(message).decode()


def _at_places(column: str, places: Iterable[tuple[int, int]]) -> Q:
    """Select rows by task and number. The condition has one member a task: SQLite limits their number."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for task, number in places:
        numbers[task].append(number)
    wanted = Q(task_id__in=[])
    for task, found in numbers.items():
        wanted |= Q(task_id=task, **{f"{column}__in": found})
    return wanted


def _size_of_pieces(entry: _Entry) -> int:
    pieces = Event.objects.filter(task_id=entry.task, kind=EventKind.ARTIFACT)
    pieces = pieces.filter(number__gte=entry.number)
    return pieces.aggregate(size=Sum(Bytes("body")))["size"] or 0


# --- removal --------------------------------------------------------------------------------------


def count_context_rows(contexts: Collection[int]) -> Counter[int]:
    """Return the number of rows that go with each of these contexts at once: values and lists, not the items."""
    memory, lists = (
        rows.filter(context__in=contexts)
        .order_by()
        .values_list("context_id")
        .annotate(n=Count("key"))
        for rows in (ConversationMemory.objects.all(), ConversationList.objects.all())
    )
    counts: Counter[int] = Counter()
    for context, count in memory.union(lists, all=True):
        counts[context] += count
    return counts


def sweep_lists(max_count: int) -> int:
    """Remove items of lists whose conversation was removed, at most so many rows. Returns how many went."""
    left = ConversationList.objects.filter(context=None).order_by("pk")
    return _sweep(left, max_count) if left.exists() else 0


@transaction.atomic
def _sweep(left: QuerySet[ConversationList], max_count: int) -> int:
    row = left.select_for_update(skip_locked=True).first()
    if row is None:
        return 0
    newest = ConversationItem.objects.filter(list=row).aggregate(n=Max("number"))["n"] or 0
    gone, _ = ConversationItem.objects.filter(list=row, number__gt=newest - max_count).delete()
    if gone < max_count:
        row.delete()
        gone += 1
    return gone
