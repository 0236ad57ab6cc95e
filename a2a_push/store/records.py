"""What goes between the tables and who sends."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from a2a_push.envelope import Notification
from a2a_push.retry_schedule import Again, Disable, GiveUp, Uncounted
from a2a_tasks.protocol.values import PushConfig

__all__ = ["LARGE", "Candidate", "Fenced", "Held", "Result"]

#: Bytes beyond which a body is stored once for all webhooks that are told the same, and counted while it is held.
LARGE = 64 * 1024


class Fenced(Exception):
    """The webhook is held by somebody else, or gone: nothing was written."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A webhook at which something may be due, held by nobody."""

    config: int
    receiver: int
    #: May its receiver be sent several notifications at a time?
    well: bool
    #: Seconds until it is due.
    wait: float
    #: Whose it is.
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """One delivery to be attempted now, by whoever holds its webhook."""

    config: int
    token: str
    receiver: int
    #: Of the receiver's breaker.
    permit: int
    well: bool
    delivery: int
    told: Notification
    made_at: datetime.datetime
    #: The attempt to be made, counted from 1 since it was made or last replayed.
    attempt: int
    trigger: str
    #: Of its task.
    tenant: str
    #: Where it goes, without its secrets.
    target: PushConfig
    #: Those, sealed.
    secret: str

    @property
    def large(self) -> int:
        """How many bytes it counts among what a process holds: none if it is small."""
        size = len(self.told.body)
        return size if size > LARGE else 0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an attempt, and what follows."""

    started_at: datetime.datetime
    seconds: float
    #: HTTP status; None = there was no answer.
    status: int | None
    #: Kind of the fault; empty = there was none.
    fault: str
    excerpt: str
    detail: str
    #: None = it was delivered.
    verdict: Again | GiveUp | Disable | Uncounted | None
    worker: str
