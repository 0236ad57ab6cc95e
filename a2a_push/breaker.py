"""A circuit breaker before a receiver: a state machine over (state, event, now), small enough for a row. Pure.

The laws:

* Closed lets everything through. It opens after 10 failures in a row, or when 70 % of at least 10 attempts within five
  minutes failed.
* Open lets nothing through until its time is up; each opening without a success in between lasts twice as long, up to an hour.
* Half-open lets one attempt through at a time, the probe. Five successes of probes close, one failure opens; attempts made
  before do neither. A probe nobody tells the end of, because its process died, counts as never made after a minute.
* Whoever fails for five days without a single success is given up: disabled, with a reason, until somebody enables it.
* Given up, and tried again because somebody wants it, is half-open: one success and the five days begin anew; ten more
  failures in a row, and it is given up again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import msgspec

__all__ = ["Breaker", "Phase", "Policy", "ask", "disable", "failed", "succeeded", "tried_again"]


class Phase(enum.StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"  #: all is well
    OPEN = "open"  #: nothing is sent
    HALF_OPEN = "half-open"  #: one attempt at a time shows whether it is well again
    DISABLED = "disabled"  #: nothing is sent until somebody enables it


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The numbers; times are seconds."""

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

    def scaled(self, scale: float) -> Policy:
        """The same with all times so much shorter, for tests."""
        return Policy(
            window=self.window * scale,
            open_for=self.open_for * scale,
            longest_open=self.longest_open * scale,
            probe_for=self.probe_for * scale,
            patience=self.patience * scale,
        )


DEFAULT = Policy()
#: The permit of an attempt that is no probe.
ORDINARY = 0


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """Attempts of one part of the window."""

    number: int
    attempts: int
    failures: int


class Breaker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state, as JSON a row can hold. A receiver nobody has met has `Breaker()`. Times are seconds since 1970."""

    phase: Phase = Phase.CLOSED
    #: The window, oldest first.
    slots: tuple[Slot, ...] = ()
    #: Failures since the last success.
    in_a_row: int = 0
    #: The first of them.
    failing_since: float | None = None
    #: Successes since it became half-open.
    successes: int = 0
    #: Openings since it was closed.
    openings: int = 0
    #: Until then nothing is sent (open), or nobody else may probe (half-open).
    until: float = 0.0
    #: The number of the last probe.
    probe: int = 0
    #: Why it is open or disabled.
    reason: str = ""
    #: It is disabled because it failed for so long, not because somebody switched it off.
    given_up: bool = False


def ask(breaker: Breaker, now: float, policy: Policy = DEFAULT) -> tuple[Breaker, int | None]:
    """May an attempt be made now? None = no; else a permit, to be given back with how it ended.

    The state returned is to be kept before the attempt is made.
    """
    if breaker.phase is Phase.CLOSED:
        return breaker, ORDINARY
    if breaker.phase is Phase.DISABLED or now < breaker.until:
        return breaker, None
    until, probe = now + policy.probe_for, breaker.probe + 1
    return _with(breaker, phase=Phase.HALF_OPEN, until=until, probe=probe), probe


def succeeded(breaker: Breaker, now: float, permit: int, policy: Policy = DEFAULT) -> Breaker:
    """An attempt was answered by 2xx."""
    well = _with(breaker, in_a_row=0, failing_since=None)
    if breaker.phase is Phase.CLOSED:
        return _with(well, slots=_counted(breaker, now, policy, failures=0))
    if not _probing(breaker, permit):
        return well
    if breaker.successes + 1 >= policy.successes_to_close:
        return Breaker(probe=breaker.probe)
    return _with(well, successes=breaker.successes + 1, until=0.0)


def failed(
    breaker: Breaker, now: float, permit: int, reason: str, policy: Policy = DEFAULT
) -> Breaker:
    """An attempt was refused, for a reason people understand."""
    since = now if breaker.failing_since is None else breaker.failing_since
    worse = _with(breaker, in_a_row=breaker.in_a_row + 1, failing_since=since)
    if breaker.phase is Phase.DISABLED:
        return worse
    if now - since >= policy.patience and worse.in_a_row >= policy.in_a_row:
        given_up = disable(worse, f"no success for {_days(now - since)}; last: {reason}")
        return _with(given_up, given_up=True)
    if breaker.phase is Phase.CLOSED:
        worse = _with(worse, slots=_counted(breaker, now, policy, failures=1))
        return _opened(worse, now, reason, policy) if _too_many(worse, policy) else worse
    return _opened(worse, now, reason, policy) if _probing(breaker, permit) else worse


def disable(breaker: Breaker, reason: str) -> Breaker:
    """Send nothing there until somebody enables it, which is to keep `Breaker()` instead."""
    return _with(breaker, phase=Phase.DISABLED, slots=(), successes=0, until=0.0, reason=reason)


def tried_again(breaker: Breaker) -> Breaker:
    """Let probes through to one that was given up, because somebody wants it; what is still under way is none of them."""
    return Breaker(
        phase=Phase.HALF_OPEN,
        failing_since=breaker.failing_since,
        probe=breaker.probe + 1,
        reason=breaker.reason,
    )


def _probing(breaker: Breaker, permit: int) -> bool:
    return breaker.phase is Phase.HALF_OPEN and permit == breaker.probe


def _opened(breaker: Breaker, now: float, reason: str, policy: Policy) -> Breaker:
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


def _counted(breaker: Breaker, now: float, policy: Policy, *, failures: int) -> tuple[Slot, ...]:
    """The window with one attempt more."""
    number = int(now // (policy.window / policy.slots))
    kept = [slot for slot in breaker.slots if number - policy.slots < slot.number < number]
    same = [slot for slot in breaker.slots if slot.number >= number]  # clocks may go back
    attempts = 1 + sum(slot.attempts for slot in same)
    failures += sum(slot.failures for slot in same)
    return (*kept, Slot(number, attempts, failures))


def _too_many(breaker: Breaker, policy: Policy) -> bool:
    attempts = sum(slot.attempts for slot in breaker.slots)
    failures = sum(slot.failures for slot in breaker.slots)
    share = attempts >= policy.least_attempts and failures >= policy.failed_share * attempts
    return share or breaker.in_a_row >= policy.in_a_row


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} days"


_with = msgspec.structs.replace
