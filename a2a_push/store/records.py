"""Arguments and results of the store of webhooks."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from a2a_push.envelope import Notification
from a2a_push.retry_schedule import Disable, GiveUp, Retry, Uncounted
from a2a_tasks.protocol.values import PushConfig
from a2a_tasks.telemetry.trace_context import NONE, TraceContext

__all__ = ["LARGE", "Candidate", "WebhookLeaseLost", "ClaimedWebhook", "AttemptResult"]

#: Bytes beyond which a body is stored once for all webhooks that receive the same, and counted while it is in memory.
LARGE = 64 * 1024


class WebhookLeaseLost(Exception):
    """Another process holds the webhook, or it was deleted: nothing was written."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An unleased webhook that may be due."""

    config: int
    receiver: int
    #: True if its receiver may get several notifications at a time.
    well: bool
    #: Seconds until it is due.
    wait: float
    #: The tenant of its task.
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedWebhook:
    """One delivery to send now, with the lease of its webhook."""

    config: int
    token: str
    receiver: int
    #: The permit of the receiver's breaker.
    permit: int
    well: bool
    delivery: int
    notification: Notification
    made_at: datetime.datetime
    #: The number of this attempt, counted from 1 since the delivery was created or last replayed.
    attempt: int
    trigger: str
    #: The tenant of its task.
    tenant: str
    #: The webhook, without its secrets.
    target: PushConfig
    #: The sealed secrets.
    secret: str
    #: The trace of the message that the task answers, if traces are on.
    trace: TraceContext = NONE

    @property
    def large(self) -> int:
        """The bytes that count against the limit of a process: 0 for a small body."""
        size = len(self.notification.body)
        return size if size > LARGE else 0


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The outcome of an attempt, and the next step."""

    started_at: datetime.datetime
    seconds: float
    #: HTTP status; None = there was no answer.
    status: int | None
    #: Kind of the fault; empty = there was none.
    fault: str
    excerpt: str
    detail: str
    #: The next step; None = it was delivered.
    verdict: Retry | GiveUp | Disable | Uncounted | None
    worker: str
