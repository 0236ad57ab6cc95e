"""A circuit breaker for a receiver: a state machine over (state, event, now), small enough for a row. Pure.

The laws:

* Closed lets everything through. It opens after 10 failures in a row, or when 70 % of at least 10 attempts within five
  minutes failed.
* Open lets nothing through until its time is up; until it closes, each opening lasts twice as long as the one before,
  up to an hour.
* Half-open lets one attempt through at a time, the probe. Five successful probes close it, one failure opens it;
  attempts made before have no effect. A probe without a result, because its process died, is void after a minute.
* A receiver that fails for five days without a success is given up: disabled, with a reason, until it is enabled.
* A receiver that was given up and is tried again on request is half-open: after one success the five days begin anew;
  after ten more failures in a row it is given up again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

__all__ = [
    "Breaker",
    "Phase",
    "BreakerPolicy",
    "ask",
    "disable",
    "record_failure",
    "record_success",
    "reopen",
]


class Phase(enum.StrEnum):
    """The state of a breaker."""

    CLOSED = "closed"  #: everything is sent
    OPEN = "open"  #: nothing is sent
    HALF_OPEN = "half-open"  #: one attempt at a time probes the receiver
    DISABLED = "disabled"  #: nothing is sent until it is enabled


@dataclass(frozen=True, kw_only=True)
class BreakerPolicy:
    """The thresholds of a breaker; times are seconds."""

    window: float = 300.0
    slots: int = 10
    least_attempts: int = 10
    failed_share: float = 0.7
    in_a_row: int = 10
    open_for: float = 30.0
    longest_open: float = 3600.0
    probe_for: float = 60.0
    successes_to_close: int = 5
    patience: float = 5 * 86_400.0

    def scale(self, scale: float) -> BreakerPolicy:
        """Return the policy with all times multiplied by a factor, for tests."""
        return BreakerPolicy(
            window=self.window * scale,
            open_for=self.open_for * scale,
            longest_open=self.longest_open * scale,
            probe_for=self.probe_for * scale,
            patience=self.patience * scale,
        )


DEFAULT = BreakerPolicy()
#: The permit of an attempt that is no probe.
ORDINARY = 0


class WindowSlot(msgspec.Struct, frozen=True, array_like=True):
    """Attempts of one part of the window."""

    number: int
    attempts: int
    failures: int


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state, as JSON for a row. A new receiver has `Breaker()`. Times are seconds since 1970."""

    phase: Phase = Phase.CLOSED
    #: The window, oldest first.
    slots: tuple[WindowSlot, ...] = ()
    #: Failures since the last success.
    in_a_row: int = 0
    #: Time of the first of these failures.
    failing_since: float | None = None
    #: Successful probes since it became half-open.
    successes: int = 0
    #: Openings since it was closed.
    openings: int = 0
    #: Until then nothing is sent (open), or no other probe (half-open).
    until: float = 0.0
    #: The number of the last probe.
    probe: int = 0
    #: The reason why it is open or disabled.
    reason: str = ""
    #: True if it was disabled because it failed for so long, not by an operator.
    given_up: bool = False


def ask(
    breaker: Breaker, now: float, policy: BreakerPolicy = DEFAULT
) -> tuple[Breaker, int | None]:
    """Ask for a permit for an attempt; None = not now. The permit is given back with the attempt's result.

    The returned state has to be stored before the attempt is made.
    """
    if breaker.phase is Phase.CLOSED:
        return breaker, ORDINARY
    if breaker.phase is Phase.DISABLED or now < breaker.until:
        return breaker, None
    until, probe = now + policy.probe_for, breaker.probe + 1
    return _with(breaker, phase=Phase.HALF_OPEN, until=until, probe=probe), probe


def record_success(
    breaker: Breaker, now: float, permit: int, policy: BreakerPolicy = DEFAULT
) -> Breaker:
    """Record an attempt that was answered by 2xx."""
    well = _with(breaker, in_a_row=0, failing_since=None)
    if breaker.phase is Phase.CLOSED:
        return _with(well, slots=_count(breaker, now, policy, failures=0))
    if not _is_probing(breaker, permit):
        return well
    if breaker.successes + 1 >= policy.successes_to_close:
        return Breaker(probe=breaker.probe)
    return _with(well, successes=breaker.successes + 1, until=0.0)


def record_failure(
    breaker: Breaker, now: float, permit: int, reason: str, policy: BreakerPolicy = DEFAULT
) -> Breaker:
    """Record a failed attempt, with a reason for people."""
    since = now if breaker.failing_since is None else breaker.failing_since
    worse = _with(breaker, in_a_row=breaker.in_a_row + 1, failing_since=since)
    if breaker.phase is Phase.DISABLED:
        return worse
    if now - since >= policy.patience and worse.in_a_row >= policy.in_a_row:
        days = f"{(now - since) / 86_400:.1f} days"
        given_up = disable(worse, f"no success for {days}; last: {reason}")
        return _with(given_up, given_up=True)
    if breaker.phase is Phase.CLOSED:
        worse = _with(worse, slots=_count(breaker, now, policy, failures=1))
        return _open(worse, now, reason, policy) if _too_many(worse, policy) else worse
    return _open(worse, now, reason, policy) if _is_probing(breaker, permit) else worse


def disable(breaker: Breaker, reason: str) -> Breaker:
    """Send nothing to the receiver until it is enabled, which means storing `Breaker()` instead."""
    return _with(breaker, phase=Phase.DISABLED, slots=(), successes=0, until=0.0, reason=reason)


def reopen(breaker: Breaker) -> Breaker:
    """Let probes through to a receiver that was given up, on request; attempts under way do not count as probes."""
    return Breaker(
        phase=Phase.HALF_OPEN,
        failing_since=breaker.failing_since,
        probe=breaker.probe + 1,
        reason=breaker.reason,
    )


def _is_probing(breaker: Breaker, permit: int) -> bool:
    return breaker.phase is Phase.HALF_OPEN and permit == breaker.probe


def _open(breaker: Breaker, now: float, reason: str, policy: BreakerPolicy) -> Breaker:
    wait = min(policy.open_for * 2 ** min(breaker.openings, 32), policy.longest_open)
    return _with(
        breaker,
        phase=Phase.OPEN,
        slots=(),
        successes=0,
        openings=breaker.openings + 1,
        until=now + wait,
        reason=reason,
    )


def _count(
    breaker: Breaker, now: float, policy: BreakerPolicy, *, failures: int
) -> tuple[WindowSlot, ...]:
    """Return the window with one more attempt."""
    number = int(now // (policy.window / policy.slots))
    kept = [slot for slot in breaker.slots if number - policy.slots < slot.number < number]
    same = [slot for slot in breaker.slots if slot.number >= number]  # clocks may go back
    attempts = 1 + sum(slot.attempts for slot in same)
    failures += sum(slot.failures for slot in same)
    return (*kept, WindowSlot(number, attempts, failures))


def _too_many(breaker: Breaker, policy: BreakerPolicy) -> bool:
    attempts = sum(slot.attempts for slot in breaker.slots)
    failures = sum(slot.failures for slot in breaker.slots)
    share = attempts >= policy.least_attempts and failures >= policy.failed_share * attempts
    return share or breaker.in_a_row >= policy.in_a_row


_with = msgspec.structs.replace
