"""The statements for conversations on PostgreSQL. They follow the one that writes batches, in its transaction."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_tasks.conversation_changes import ConversationChanged
from a2a_tasks.store.backend.statements import fetch
from a2a_tasks.store.records import Batch
from a2a_tasks.store.sql_files import read_sql

__all__ = ["change_conversations"]

CHANGE_MEMORY = read_sql("change_memory")
TRIM_LISTS = read_sql("trim_lists")
CHANGE_LISTS = read_sql("change_lists")


def change_conversations(batches: Sequence[Batch]) -> None:
    """Write what these batches change in their conversations; call it in the transaction that writes them.

    Raises ConversationChanged: then the transaction must be rolled back.
    """
    _change_memory(batches)
    _change_lists(batches)


def _change_memory(batches: Sequence[Batch]) -> None:
    changes = [(b, change) for b in batches if b.conversation for change in b.conversation.memory]
    if not changes:
        return
    values = {
        "n": list(range(len(changes))),
        "task": [batch.task for batch, _ in changes],
        "run": [batch.run for batch, _ in changes],
        "key": [change.key for _, change in changes],
        "expected": [change.expected for _, change in changes],
        "kind": [change.kind for _, change in changes],
        "value": [change.value for _, change in changes],
    }
    size = sum(len(change.value or b"") for _, change in changes)
    for (key,) in fetch(CHANGE_MEMORY, values, size=size):
        raise ConversationChanged(key)


def _change_lists(batches: Sequence[Batch]) -> None:
    changes = [(b, change) for b in batches if b.conversation for change in b.conversation.lists]
    if not changes:
        return
    trimmed = [(batch, change) for batch, change in changes if change.trims]
    if trimmed:
        kept = {
            "task": [batch.task for batch, _ in trimmed],
            "key": [change.key for _, change in trimmed],
            "kept": [change.kept for _, change in trimmed],
        }
        fetch(TRIM_LISTS, kept)
    items = [
        (n, number, item)
        for n, (_, change) in enumerate(changes)
        for number, item in enumerate(change.added, change.kept + 1)
    ]
    values = {
        "n": list(range(len(changes))),
        "task": [batch.task for batch, _ in changes],
        "run": [batch.run for batch, _ in changes],
        "key": [change.key for _, change in changes],
        "expected": [change.expected for _, change in changes],
        "count": [change.kept + len(change.added) for _, change in changes],
        "size": [change.size for _, change in changes],
        "item_n": [n for n, _, _ in items],
        "numbers": [number for _, number, _ in items],
        "items": [item for _, _, item in items],
    }
    size = sum(len(item) for _, _, item in items)
    for (key,) in fetch(CHANGE_LISTS, values, size=size):
        raise ConversationChanged(key)
