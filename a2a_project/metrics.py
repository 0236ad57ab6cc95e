"""`/metrics`, for Prometheus: what this process has counted, and how it stands in the tables, which is the same everywhere.

Workers have no web server: `metrics_port.py` shows their own. See docs/decisions/0104.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from a2a_push.store.figures import Figures, figures
from a2a_tasks.access.callers import identify
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
from a2a_tasks.store.hop import hop

__all__ = ["PATH", "SCOPE", "serve"]

PATH = "/metrics"
#: The scope of callers who may read it.
SCOPE = "metrics"
NOT_FOUND = b'{"error":"not found"}'
UNAVAILABLE = b'{"status":"unavailable"}'


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Show them to those who may see them; to others there is nothing here."""
    request = Request(scope, receive)
    if request.method == "HEAD":
        send = without_body(send)
    try:
        allowed = await _may_read(request)
    except Overloaded:  # nobody can tell who it is
        await respond(send, 503, UNAVAILABLE, [(b"retry-after", b"1")])
        return
    if not allowed or request.method not in {"GET", "HEAD"}:
        await respond(send, 404, NOT_FOUND)
        return
    headers = [(b"content-type", CONTENT_TYPE_LATEST.encode()), (b"cache-control", b"no-store")]
    await respond(send, 200, await _text(), headers)


async def _may_read(request: Request) -> bool:
    """Is it a listed network, or a caller with the scope? Raises Overloaded."""
    credentials = request.credentials
    if _is_listed(credentials.peer):
        return True
    try:
        return SCOPE in (await identify(credentials)).scopes
    except (Unauthenticated, WrongCredentials, InsufficientScope, RateLimited):
        return False


def _is_listed(peer: str) -> bool:
    """Is it the other end of the connection itself that is listed? Whom a proxy speaks for is not asked."""
    listed = networks(conf.METRICS_PEERS)
    try:
        return any(ipaddress.ip_address(peer) in network for network in listed)
    except ValueError:  # a Unix socket has no address
        return False


async def _text() -> bytes:
    """All of it; if the database is away, what is known without it."""
    standing = CollectorRegistry()
    try:
        standing.register(_Standing(*await hop(_read)))
    except Overloaded:
        standing.register(_Away())
    return generate_latest() + generate_latest(standing)


def _read() -> tuple[Figures, dict[str, int], dict[str, int]]:
    return figures(), runs.standing(), workers.serving(registry.queues_in_use(), workers.seen())


class _Standing(Collector):
    """How it stands."""

    def __init__(self, webhooks: Figures, running: dict[str, int], serving: dict[str, int]) -> None:
        self._webhooks, self._runs, self._serving = webhooks, running, serving

    def collect(self) -> Iterator[Metric]:
        """Called by the library."""
        now = self._webhooks
        yield _one("a2a_database_up", "Does the database answer?", 1)
        yield _one(
            "a2a_webhooks_due", "Webhooks with something to be sent, in nobody's hands.", now.due
        )
        yield _one("a2a_webhook_deliveries_pending", "Deliveries not settled.", now.pending)
        yield _one("a2a_webhook_late_seconds", "Since the oldest due delivery was due.", now.late)
        blocked = {"breaker": now.breakers_open, "paused": now.paused, "disabled": now.disabled}
        yield _by("a2a_webhook_receivers_blocked", "Receivers left alone, by why.", "by", blocked)
        yield _by("a2a_runs", "Runs of agents that wait or are under way.", "status", self._runs)
        yield _by(
            "a2a_queue_workers",
            "Living processes that take from a queue.",
            "queue",
            self._serving,
        )


class _Away(Collector):
    """The database does not say."""

    def collect(self) -> Iterator[Metric]:
        """Called by the library."""
        yield _one("a2a_database_up", "Does the database answer?", 0)


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
