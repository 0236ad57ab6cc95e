"""The reason why a delivery waits, in a sentence. The functions are pure.

The first reason that holds counts. The begin of a sentence never changes: docs/webhooks.md tells operators by it
what to do.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from a2a_console.times import duration, moment
from a2a_push.breaker import Phase

__all__ = ["DeliveryFacts", "Wait", "Why", "wait", "why"]


class Why(enum.StrEnum):
    """The reasons why a delivery waits; each is the begin of a sentence."""

    WEBHOOK_DISABLED = "The webhook is disabled"
    RECEIVER_DISABLED = "The receiver is disabled"
    TURN = "An earlier notification of the webhook goes first"
    UNDER_WAY = "It is being sent"
    PAUSED = "The receiver asked to be left alone"
    BREAKER = "The breaker is open"
    PROBING = "The receiver is being tried"
    SCHEDULE = "The next attempt"
    PLACE = "It is due"


@dataclass(frozen=True, kw_only=True)
class DeliveryFacts:
    """The facts about a pending delivery, its webhook and its receiver."""

    #: The number of attempts so far, and of all attempts in the schedule.
    attempts: int = 0
    of: int = 10
    #: The reason why the last attempt failed; empty = there was none.
    reason: str = ""
    next_at: datetime | None = None
    #: True if another delivery of the webhook goes first.
    behind: bool = False
    webhook_disabled: str = ""
    #: The worker that sends for the webhook, and the end of its lease.
    worker: str = ""
    lease_until: datetime | None = None
    receiver_disabled: bool = False
    disabled_reason: str = ""
    paused_until: datetime | None = None
    phase: Phase = Phase.CLOSED
    breaker_reason: str = ""
    probe_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason why a delivery waits, and the end of the wait; None = unknown."""

    why: Why
    sentence: str
    until: datetime | None = None


def why(at: DeliveryFacts, now: datetime) -> str:
    """Return the reason why a delivery waits, in a sentence."""
    return wait(at, now).sentence


def wait(at: DeliveryFacts, now: datetime) -> Wait:
    """Return the reason why a delivery waits."""
    return next(_waits(at, now))


def _waits(at: DeliveryFacts, now: datetime) -> Iterator[Wait]:
    if at.webhook_disabled:
        yield _wait(Why.WEBHOOK_DISABLED, f": {at.webhook_disabled}")
    if at.receiver_disabled:
        yield _wait(Why.RECEIVER_DISABLED, f": {at.disabled_reason or 'without a reason'}")
    if at.behind:
        yield _wait(Why.TURN)
    if at.lease_until and at.lease_until > now:
        yield _wait(Why.UNDER_WAY, f" by {at.worker or 'a worker'}", at.lease_until)
    yield from _of_the_receiver(at, now)
    if at.next_at and at.next_at > now:
        number = f"{at.attempts + 1} of {at.of}"
        until = _until(at.next_at, now)
        yield _wait(Why.SCHEDULE, f", {number}, comes at {until}{_because(at.reason)}", at.next_at)
    yield _wait(Why.PLACE, ", and goes as soon as there is a place for it")


def _of_the_receiver(at: DeliveryFacts, now: datetime) -> Iterator[Wait]:
    if at.paused_until and at.paused_until > now:
        yield _wait(Why.PAUSED, f" until {_until(at.paused_until, now)}", at.paused_until)
    because = _because(at.breaker_reason)
    if at.phase is Phase.OPEN and at.probe_at and at.probe_at > now:
        yield _wait(Why.BREAKER, f" until {_until(at.probe_at, now)}{because}", at.probe_at)
    if at.phase in {Phase.OPEN, Phase.HALF_OPEN}:
        yield _wait(Why.PROBING, f", one notification at a time{because}")


def _wait(why: Why, more: str = "", until: datetime | None = None) -> Wait:
    return Wait(why, f"{why}{more}.", until)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""


def _until(end: datetime, now: datetime) -> str:
    return f"{moment(end)} (in {duration(end - now)})"
