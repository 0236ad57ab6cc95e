"""The times of new attempts after a refused notification: the schedule of Standard Webhooks 1.0.0. Pure.

The laws: attempts are counted, not timed, so that a host that was away skips none. Jitter only makes attempts earlier,
so that the last one comes within 75 h 35 m 05 s. Retry-After of a receiver only makes them later, by a day at most.
Every answer but 2xx is tried again, also 4xx (a receiver that repairs its route gets the missed notifications); 410 is
an end. A failure of the host itself is no attempt.
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
    "Retry",
    "Disable",
    "GiveUp",
    "FailedAttempt",
    "Uncounted",
    "read_retry_after",
    "decide",
    "decide_uncounted",
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
#: The part of a delay that jitter may remove.
JITTER = 0.1
#: Seconds of pause for an overloaded receiver that gives no time.
SHORT_REST = 5
#: Seconds until the host repeats a send that failed by its own fault.
OWN_REST = 60
#: Maximum wait that a receiver may ask for, in seconds.
MAX_ASKED_SECONDS = 24 * _HOUR
#: Statuses of an overloaded receiver: its other notifications are paused as well.
BUSY = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class FailedAttempt(Protocol):
    """An answer other than 2xx, with the members that the schedule needs."""

    @property
    def status(self) -> int | None:
        """The HTTP status; None = no answer."""

    @property
    def retry_after(self) -> str | float | None:
        """The header's text, or its seconds."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt."""

    #: Seconds since 1970.
    at: float
    #: The end of a pause of the whole receiver, not only of this notification; None = others may be sent.
    pause_until: float | None = None


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The end of all attempts: this notification is dead."""

    reason: str


@dataclass(frozen=True, slots=True)
class Disable:
    """The end of all sends to the webhook."""

    reason: str


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A failure that counts neither as an attempt nor against the receiver: send later."""

    #: Seconds since 1970.
    at: float


def decide_uncounted(made_at: float, now: float, *, scale: float = 1.0) -> Uncounted | None:
    """Return the next step if the host itself could not send a notification made at `made_at` (seconds since 1970).

    None = it has waited as long as all attempts take: now the failure counts as one, so that nothing waits for ever.
    """
    waits = now - made_at < sum(DELAYS) * scale
    return Uncounted(now + OWN_REST * scale) if waits else None


def decide(
    attempt: int, refused: FailedAttempt, now: float, chance: float, *, scale: float = 1.0
) -> Retry | GiveUp | Disable:
    """Decide what follows the `attempt`-th attempt (the first is 1), refused at `now` (seconds since 1970).

    `chance` is in [0, 1); `scale` shortens the schedule for tests. Raises ValueError for an attempt below 1.
    """
    if attempt < 1:
        raise ValueError("the first attempt is 1")
    if refused.status == HTTPStatus.GONE:
        return Disable("the receiver is gone (410)")
    if attempt >= len(DELAYS):
        return GiveUp(f"{len(DELAYS)} attempts")
    planned = DELAYS[attempt] * (1 - JITTER * chance)
    requested = min(read_retry_after(refused.retry_after, now), MAX_ASKED_SECONDS * scale)
    # The plan applies to this notification only: others need not wait for hours because it failed often.
    pause = now + max(SHORT_REST * scale, requested)
    busy = refused.status in BUSY
    return Retry(now + max(planned * scale, requested), pause_until=pause if busy else None)


def read_retry_after(retry_after: str | float | None, now: float) -> float:
    """Return the seconds that Retry-After asks for (RFC 9110 §10.2.3); 0 for an invalid or past value."""
    if retry_after is None:
        return 0.0
    seconds = _read(retry_after.strip(), now) if isinstance(retry_after, str) else retry_after
    return max(0.0, seconds)  # 0 for NaN, too: it compares as not greater


def _read(text: str, now: float) -> float:
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
