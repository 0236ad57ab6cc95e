"""`/metrics`, for Prometheus: the counters of this process, and gauges from the tables, equal in all processes.

Workers have no web server: `metrics_port.py` serves their counters. See docs/decisions/0023.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from a2a_push.store.statistics import WebhookCounts, read_counts
from a2a_tasks.access.authentication import identify
from a2a_tasks.access.credentials import networks
from a2a_tasks.agents import registry
from a2a_tasks.bindings.http import Receive, Request, Scope, Send, respond, without_body
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import (
    InsufficientScope,
    Overloaded,
    RateLimited,
    Unauthenticated,
    WrongCredentials,
)
from a2a_tasks.store import runs, workers
from a2a_tasks.store.db import run_in_thread

__all__ = ["PATH", "SCOPE", "serve"]

PATH = "/metrics"
#: The scope of callers that may read metrics.
SCOPE = "metrics"
NOT_FOUND = b'{"error":"not found"}'
UNAVAILABLE = b'{"status":"unavailable"}'


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Send the metrics to callers that may read them; for others the page does not exist."""
    request = Request(scope, receive)
    if request.method == "HEAD":
        send = without_body(send)
    try:
        allowed = await _may_read(request)
    except Overloaded:  # the caller cannot be identified
        await respond(send, 503, UNAVAILABLE, [(b"retry-after", b"1")])
        return
    if not allowed or request.method not in {"GET", "HEAD"}:
        await respond(send, 404, NOT_FOUND)
        return
    headers = [(b"content-type", CONTENT_TYPE_LATEST.encode()), (b"cache-control", b"no-store")]
    await respond(send, 200, await _text(), headers)


async def _may_read(request: Request) -> bool:
    """Return whether the peer is in a listed network, or the caller has the scope. Raises Overloaded."""
    credentials = request.credentials
    if _is_listed(credentials.peer):
        return True
    try:
        return SCOPE in (await identify(credentials)).scopes
    except (Unauthenticated, WrongCredentials, InsufficientScope, RateLimited):
        return False


def _is_listed(peer: str) -> bool:
    """Return whether the peer of the connection itself is listed, not a client that a proxy forwards."""
    listed = networks(conf.METRICS_PEERS)
    try:
        return any(ipaddress.ip_address(peer) in network for network in listed)
    except ValueError:  # a Unix socket has no address
        return False


async def _text() -> bytes:
    """Return all metrics; if the database is away, those that do not need it."""
    standing = CollectorRegistry()
    try:
        standing.register(_Standing(*await run_in_thread(_read)))
    except Overloaded:
        standing.register(_Away())
    return generate_latest() + generate_latest(standing)


def _read() -> tuple[WebhookCounts, dict[str, int], dict[str, int]]:
    return (
        read_counts(),
        runs.count_by_status(),
        workers.count_serving(registry.queues_in_use(), workers.list_seen()),
    )


class _Standing(Collector):
    """The gauges from the tables."""

    def __init__(
        self, webhooks: WebhookCounts, running: dict[str, int], serving: dict[str, int]
    ) -> None:
        self._webhooks, self._runs, self._serving = webhooks, running, serving

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        now = self._webhooks
        yield _one("a2a_database_up", "1 if the database answers.", 1)
        yield _one(
            "a2a_webhooks_due", "Webhooks with due deliveries that no process has leased.", now.due
        )
        yield _one("a2a_webhook_deliveries_pending", "Pending deliveries.", now.pending)
        yield _one(
            "a2a_webhook_late_seconds",
            "Seconds since the oldest due delivery became due.",
            now.late,
        )
        blocked = {"breaker": now.breakers_open, "paused": now.paused, "disabled": now.disabled}
        yield _by(
            "a2a_webhook_receivers_blocked",
            "Receivers to which nothing, or one delivery at a time, is sent now, by reason.",
            "by",
            blocked,
        )
        yield _by("a2a_runs", "Queued, active and parked runs of agents.", "status", self._runs)
        yield _by(
            "a2a_queue_workers",
            "Live processes that take work from a queue.",
            "queue",
            self._serving,
        )


class _Away(Collector):
    """The gauges while the database is away."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield _one("a2a_database_up", "1 if the database answers.", 0)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
