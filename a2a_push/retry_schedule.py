"""When a notification that was refused is tried again: the schedule of Standard Webhooks 1.0.0. Pure.

The laws: attempts are counted, never timed, so that a host that was away skips none; jitter only makes earlier, so that
the last attempt comes within 75 h 35 m 05 s; what a receiver asks for by Retry-After only makes later, by a day at most.
Everything but 2xx is tried again, 4xx too (a receiver that mends its route gets what it missed); 410 is an end.
What the host itself could not send was no attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Protocol

__all__ = [
    "DELAYS",
    "JITTER",
    "Again",
    "Disable",
    "GiveUp",
    "Refusal",
    "Uncounted",
    "asked_seconds",
    "decide",
    "spared",
]

_MINUTE, _HOUR = 60, 3600
#: Seconds before each attempt, the first included.
DELAYS = (
    0,
    5,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
#: The part of a delay that chance may take away.
JITTER = 0.1
#: Seconds for which a receiver is left alone that has too much to do, and does not say for how long.
SHORT_REST = 5
#: Seconds until the host tries again what it could not send itself.
OWN_REST = 60
#: Longest a receiver may ask us to wait, in seconds.
LONGEST_ASKED = 24 * _HOUR
#: The receiver has too much to do: nobody else should knock there either.
BUSY = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class Refusal(Protocol):
    """What is asked of an attempt that was not answered by 2xx."""

    @property
    def status(self) -> int | None:
        """The HTTP status; None = there was no answer."""

    @property
    def retry_after(self) -> str | float | None:
        """The header as it was, or its seconds."""


@dataclass(frozen=True, slots=True)
class Again:
    """Try again."""

    #: Seconds since 1970.
    at: float
    #: Leave the whole receiver alone until then, not only this notification; None = others may be sent.
    pause_until: float | None = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Try no more: this notification is dead."""

    reason: str


@dataclass(frozen=True, slots=True)
class Disable:
    """Send nothing there any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Uncounted:
    """It was no attempt, and says nothing about the receiver: send it later."""

    #: Seconds since 1970.
    at: float


def spared(made_at: float, now: float, *, scale: float = 1.0) -> Uncounted | None:
    """What follows if the host itself could not send a notification made at `made_at` (both seconds since 1970).

    None = it has waited as long as all attempts take: now it counts as one, so that nothing waits for ever.
    """
    waits = now - made_at < sum(DELAYS) * scale
    return Uncounted(now + OWN_REST * scale) if waits else None


def decide(
    attempt: int, refused: Refusal, now: float, chance: float, *, scale: float = 1.0
) -> Again | GiveUp | Disable:
    """What follows from the `attempt`-th attempt (the first is 1), refused at `now` (seconds since 1970).

    `chance` is in [0, 1); `scale` shortens the schedule for tests. Raises ValueError for an attempt below 1.
    """
    if attempt < 1:
        raise ValueError("the first attempt is 1")
    if refused.status == HTTPStatus.GONE:
        return Disable("the receiver is gone (410)")
    if attempt >= len(DELAYS):
        return GiveUp(f"{len(DELAYS)} attempts")
    planned = DELAYS[attempt] * (1 - JITTER * chance)
    asked = min(asked_seconds(refused.retry_after, now), LONGEST_ASKED * scale)
    # The plan is this notification's: others need not wait for hours because it has failed often.
    pause = now + max(SHORT_REST * scale, asked)
    busy = refused.status in BUSY
    return Again(now + max(planned * scale, asked), pause_until=pause if busy else None)


def asked_seconds(retry_after: str | float | None, now: float) -> float:
    """Seconds that Retry-After asks for (RFC 9110 §10.2.3); 0 for what is no such thing, or past."""
    if retry_after is None:
        return 0.0
    seconds = _read(retry_after.strip(), now) if isinstance(retry_after, str) else retry_after
    return max(0.0, seconds)  # 0 for NaN, too, which is not more than it


def _read(text: str, now: float) -> float:
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
