"""The health of a receiver: its state, the reason if deliveries are not sent to it, and the end of that state."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from a2a_push.breaker import Phase
from a2a_push.models import Receiver
from a2a_push.store.receivers import read

__all__ = ["FAILING", "ReceiverHealth", "Word", "describe_health", "filter_health"]

#: The word of filters for receivers whose last attempt failed, or was slow after a failure.
FAILING = "failing"


class Word(enum.StrEnum):
    """The states of a receiver, the worst first."""

    DISABLED = "disabled"  #: nothing is sent until an operator enables it
    OPEN = "open"  #: its breaker is open
    HALF_OPEN = "half-open"  #: one delivery at a time probes whether it has recovered
    PAUSED = "paused"  #: it asked for a pause (Retry-After)
    GONE = "gone"  #: it answered 410, which disables a webhook; others there are sent to
    CLOSED = "closed"  #: its breaker is closed: all is well


@dataclass(frozen=True, kw_only=True)
class ReceiverHealth:
    """The state of a receiver, the reason if it is not `closed`, and the end of the state."""

    word: Word
    why: str = ""
    until: datetime | None = None


def describe_health(receiver: Receiver) -> ReceiverHealth:
    """Return the health of the receiver."""
    if receiver.disabled_at is not None:
        return ReceiverHealth(word=Word.DISABLED, why=receiver.disabled_reason)
    breaker = read(receiver)
    if breaker.phase is Phase.OPEN:
        return ReceiverHealth(word=Word.OPEN, why=breaker.reason, until=receiver.probe_at)
    if breaker.phase is Phase.HALF_OPEN:
        return ReceiverHealth(word=Word.HALF_OPEN, why=breaker.reason)
    if receiver.paused_until is not None and receiver.paused_until > timezone.now():
        return ReceiverHealth(
            word=Word.PAUSED, why="it asked to be left alone", until=receiver.paused_until
        )
    if _is_gone(receiver):
        return ReceiverHealth(word=Word.GONE, why="answered 410, which disables the webhook")
    return ReceiverHealth(word=Word.CLOSED)


def filter_health(rows: QuerySet[Receiver], word: str) -> QuerySet[Receiver]:
    """Return the receivers in a state, or those that are FAILING. OPEN and HALF_OPEN are one: the breaker is not closed."""
    if word == Word.DISABLED:
        return rows.exclude(disabled_at=None)
    if word == Word.PAUSED:
        return rows.filter(paused_until__gt=timezone.now())
    if word == Word.GONE:
        failed = Q(last_success_at=None) | Q(last_success_at__lt=F("last_failure_at"))
        return rows.filter(failed, well=True, last_failure_at__isnull=False)
    if word == FAILING:
        return rows.filter(well=False).exclude(last_failure_at=None)
    return rows.filter(disabled_at=None).exclude(probe_at=None)


def _is_gone(receiver: Receiver) -> bool:
    """Return whether its last answer was 410: a failure of the webhook, after which the receiver is well."""
    failed, success = receiver.last_failure_at, receiver.last_success_at
    return receiver.well and failed is not None and (success is None or success < failed)
