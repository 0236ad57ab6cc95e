"""The conversation of a turn on the host: read from the store when the agent asks for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import msgspec

from a2a_tasks.agents import Conversation, Message
from a2a_tasks.conversation_changes import StoredItems, StoredValue
from a2a_tasks.store import conversations
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.records import ClaimedRun

__all__ = ["StoredConversation"]

T = TypeVar("T")
_message = msgspec.json.Decoder(Message).decode


class StoredConversation(Conversation):
    """The conversation of a run's task. Nothing is read before the agent uses it."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__()
        self._run = run

    async def read_value(self, key: str) -> StoredValue:
        """Read a value from the store. Raises TransactionRefused."""
        return await self._read_for_changes(lambda: conversations.read_value(self._run.task, key))

    async def read_version(self, key: str) -> int:
        """Read the version of a value from the store."""
        return await self._read_for_changes(lambda: conversations.read_version(self._run.task, key))

    async def read_items(self, key: str, skip: int, limit: int | None) -> StoredItems:
        """Read a part of a list from the store."""
        return await self._read_for_changes(
            lambda: conversations.read_items(self._run.task, key, skip, limit)
        )

    async def count_keys(self) -> int:
        """Count the keys in the store."""
        return await self._read_for_changes(lambda: conversations.count_keys(self._run.task))

    async def read_history(self, limit: int) -> list[Message]:
        """Read the last messages of all tasks."""
        turn = (self._run.task, self._run.input_number)
        texts = await self._query(lambda: conversations.read_history(*turn, limit))
        return [_message(text) for text in texts]

    async def _read_for_changes(self, work: Callable[[], T]) -> T:
        self.is_used = True  # also by an agent in another process, which asks here
        return await self._query(work)

    async def _query(self, work: Callable[[], T]) -> T:
        return await retry_until_answered(functools.partial(run_in_thread, work), repeatable=True)
