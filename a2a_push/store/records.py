"""Values that pass between the tables of webhooks and the sender."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from a2a_push.envelope import Notification
from a2a_push.retry_schedule import Disable, GiveUp, Retry, Uncounted
from a2a_tasks.protocol.values import PushConfig

__all__ = ["LARGE", "Candidate", "WebhookLeaseLost", "ClaimedWebhook", "AttemptResult"]

#: Bytes beyond which a body is stored once for all webhooks that are told the same, and counted while it is held.
LARGE = 64 * 1024


class WebhookLeaseLost(Exception):
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
    #: The tenant of its task.
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedWebhook:
    """One delivery to be attempted now, by whoever holds its webhook."""

    config: int
    token: str
    receiver: int
    #: Of the receiver's breaker.
    permit: int
    well: bool
    delivery: int
    notification: Notification
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
        """Return the bytes that count against the limit of a process: 0 for a small body."""
        size = len(self.notification.body)
        return size if size > LARGE else 0


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The outcome of an attempt, and what follows from it."""

    started_at: datetime.datetime
    seconds: float
    #: HTTP status; None = there was no answer.
    status: int | None
    #: Kind of the fault; empty = there was none.
    fault: str
    excerpt: str
    detail: str
    #: None = it was delivered.
    verdict: Retry | GiveUp | Disable | Uncounted | None
    worker: str
