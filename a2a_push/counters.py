"""Counters of this process for webhooks, for `/metrics`.

No tenant, address or id is a label: there are too many, and they are confidential.
"""

from __future__ import annotations

from prometheus_client import Gauge, Histogram

__all__ = ["DELIVERED", "attempts", "under_way"]

#: The outcome of an attempt that was answered by 2xx; others are the kind of the fault
#: (`a2a_tasks.outbound.FaultKind`).
DELIVERED = "delivered"

attempts = Histogram(
    "a2a_webhook_attempt_seconds",
    "Attempts at webhooks by outcome, with the time from the look-up of the name to the end of the answer.",
    ["outcome"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 5, 10, 15, 30),
)
under_way = Gauge("a2a_webhooks_under_way", "Requests to webhooks under way.")
