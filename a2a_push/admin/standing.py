"""How a receiver stands: whether it is sent to, if not, why, and until when."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from a2a_push.breaker import Phase
from a2a_push.models import Receiver
from a2a_push.store.receivers import read

__all__ = ["Standing", "Word", "standing"]


class Word(enum.StrEnum):
    """Where a receiver stands, the worst first."""

    DISABLED = "disabled"  #: nothing is sent until somebody enables it
    OPEN = "open"  #: its breaker is
    HALF_OPEN = "half-open"  #: one at a time shows whether it is well again
    PAUSED = "paused"  #: it asked to be left alone
    CLOSED = "closed"  #: its breaker is: all is well


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The word, why it is not `closed`, and until when."""

    word: Word
    why: str = ""
    until: datetime | None = None


def standing(receiver: Receiver, now: datetime) -> Standing:
    """How the receiver stands."""
    if receiver.disabled_at is not None:
        return Standing(word=Word.DISABLED, why=receiver.disabled_reason)
    breaker = read(receiver)
    if breaker.phase is Phase.OPEN:
        return Standing(word=Word.OPEN, why=breaker.reason, until=receiver.probe_at)
    if breaker.phase is Phase.HALF_OPEN:
        return Standing(word=Word.HALF_OPEN, why=breaker.reason)
    if receiver.paused_until is not None and receiver.paused_until > now:
        return Standing(
            word=Word.PAUSED, why="it asked to be left alone", until=receiver.paused_until
        )
    return Standing(word=Word.CLOSED)
