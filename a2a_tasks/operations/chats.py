"""Conversations whose history the client keeps, for bindings of other protocols: the one that a message continues.

It is no operation of A2A: a message is sent by SendMessage with a `ChatPlace` in its context.
"""

from __future__ import annotations

from collections.abc import Collection

from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.store.chat_prefixes import find_chats_batched, move_batched
from a2a_tasks.store.records import FoundChat, PlaceTaken

__all__ = ["FoundChat", "PlaceTaken", "find_chats", "move_chat"]


async def find_chats(call: CallContext, digests: Collection[str]) -> list[FoundChat]:
    """Return the caller's conversations with the agent that have come to one of these digests. Raises Overloaded."""
    return await find_chats_batched((call.scope(""), digests))


async def move_chat(task_id: str, before: str, digest: str) -> None:
    """Move the conversation of a task on to another digest. Raises Overloaded."""
    await move_batched((task_id, before, digest))
