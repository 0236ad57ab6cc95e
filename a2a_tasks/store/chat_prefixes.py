"""Conversations whose history the client keeps: found by the digest of the history, and moved on with each message."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from a2a_tasks.caller import OwnerScope
from a2a_tasks.store.backend.interface import backend
from a2a_tasks.store.batched_call import BatchedCall, needs_no_mark
from a2a_tasks.store.records import ChatMove, FoundChat

__all__ = ["find_chats", "find_chats_batched", "move_batched", "move_chats"]


def find_chats(asked: Sequence[tuple[OwnerScope, Collection[str]]]) -> list[list[FoundChat]]:
    """Return, for each scope and its digests, the newest conversation that has come to each of them."""
    return backend().find_chats(asked)


#: `await find_chats_batched((scope, digests))`: find in one query with other look-ups.
find_chats_batched: BatchedCall[tuple[OwnerScope, Collection[str]], list[FoundChat]] = BatchedCall(
    lambda asked: list(find_chats(asked)), again=needs_no_mark
)


def move_chats(moves: Sequence[ChatMove]) -> list[None]:
    """Move the conversations of these tasks on; those that are elsewhere by now stay there."""
    backend().move_chats(moves)
    return [None] * len(moves)


#: `await move_batched((task, before, digest))`: move the conversation of a task from one digest on to another.
move_batched: BatchedCall[ChatMove, None] = BatchedCall(
    lambda moves: list(move_chats(moves)), again=needs_no_mark
)
