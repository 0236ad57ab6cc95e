"""Counters of this process for requests, for `/metrics`.

The labels are bounded: a client can invent none of them, and no tenant, address or id is one.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

__all__ = ["UNKNOWN", "first_event", "requests", "seconds", "streams_open"]

#: The label for a value that is unknown, because the request failed before its negotiation.
UNKNOWN = "unknown"

requests = Counter(
    "a2a_requests_total",
    "Requests by operation (its name in A2A 1.0), dialect, binding, and `ok` or the name of the error.",
    ["method", "dialect", "binding", "code"],
)
seconds = Histogram(
    "a2a_request_seconds",
    "Seconds from a request to its answer; for a stream, until the answer begins.",
    ["method", "binding"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
)
streams_open = Gauge("a2a_streams_open", "Open streams of events.", ["binding"])
first_event = Histogram(
    "a2a_first_event_seconds",
    "Seconds from the acceptance of a SendStreamingMessage to its first event after the task.",
    ["agent"],
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300),
)
