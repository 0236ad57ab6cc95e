"""Places in conversations whose history the client keeps, by digests of that history: the host knows them again."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

__all__ = ["ChatPlace", "ChatState", "HistoryDigest", "digest"]

_encode = msgspec.json.Encoder().encode


class ChatState(enum.StrEnum):
    """The fate of the last message of a history."""

    #: It is being answered, or the answer was never sent.
    ASKED = "asked"
    #: The client was told of a failure, after which it may send the same again.
    FAILED = "failed"
    #: The history ends with the answer.
    ANSWERED = "answered"


class HistoryDigest:
    """The digest of a history: of roles and contents, of the caller and the agent that it belongs to.

    It keeps nothing of them: they may be large.
    """

    def __init__(
        self, whose: Sequence[str], history: Iterable[Sequence[str]], outcome: ChatState
    ) -> None:
        self._hash = hashlib.sha256(_encode([*whose, outcome]))
        for entry in history:
            self._hash.update(_encode(entry))

    def then(self, *more: Sequence[str]) -> str:
        """Return the digest of the history with more entries."""
        found = self._hash.copy()
        for entry in more:
            found.update(_encode(entry))
        return found.hexdigest()


def digest(whose: Sequence[str], history: Iterable[Sequence[str]], outcome: ChatState) -> str:
    """Return the digest of a whole history."""
    return HistoryDigest(whose, history, outcome).then()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatPlace:
    """The place of a message in such a conversation: stored with the message, in one transaction."""

    #: The digest of the history with this message.
    asked: str
    #: The key of the conversation that it continues, and the digest of the history before; 0 = it begins one.
    row: int = 0
    before: str = ""
