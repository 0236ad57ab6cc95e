"""`/metrics`, for Prometheus: the counters of this process, and gauges from the tables, equal in all processes.

Workers have no web server: `metrics_port.py` serves their counters. See docs/decisions/0023.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping

from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from a2a_console.queue.waiting import list_waiting
from a2a_push.store.statistics import read_counts
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
from a2a_tasks.telemetry.run_counters import OTHERS

__all__ = ["PATH", "SCOPE", "serve"]

PATH = "/metrics"
#: The scope of callers that may read metrics.
SCOPE = "metrics"
NOT_FOUND = b'{"error":"not found"}'
DATABASE_UP = "1 if the database answers in time."
#: Seconds that the database has to answer, unless the caller says how long it waits.
PATIENCE = 5.0
#: Maximum number of waiting tasks that are read.
MAX_WAITING = 1000
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
    await respond(send, 200, await _text(_patience(request)), headers)


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


def _patience(request: Request) -> float:
    """Return the seconds that the database has to answer: half of those that Prometheus waits."""
    try:
        return float(request.header("x-prometheus-scrape-timeout-seconds")) / 2
    except ValueError:
        return PATIENCE


async def _text(seconds: float) -> bytes:
    """Return all metrics; if the database does not answer within so many seconds, those that do not need it."""
    standing = CollectorRegistry()
    try:
        async with asyncio.timeout(seconds):
            standing.register(_Standing(await run_in_thread(_read)))
    except (Overloaded, TimeoutError):
        standing.register(_Standing([_one("a2a_database_up", DATABASE_UP, 0)]))
    return generate_latest() + generate_latest(standing)


class _Standing(Collector):
    """The gauges from the tables."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> list[Metric]:
        """Return the metrics."""
        return self._found


def _read() -> list[Metric]:
    """Read the gauges from the tables."""
    return [_one("a2a_database_up", DATABASE_UP, 1), *_webhooks(), *_runs(), *_people()]


def _webhooks() -> Iterator[Metric]:
    now = read_counts()
    yield _one(
        "a2a_webhooks_due", "Webhooks with due deliveries that no process has leased.", now.due
    )
    yield _one("a2a_webhook_deliveries_pending", "Pending deliveries.", now.pending)
    yield _one(
        "a2a_webhook_late_seconds", "Seconds since the oldest notification that can be sent became due.", now.late
    )
    yield _by(
        "a2a_webhook_receivers_blocked",
        "Receivers to which nothing, or one delivery at a time, is sent now, by reason.",
        "by",
        {"breaker": now.breakers_open, "paused": now.paused, "disabled": now.disabled},
    )


def _runs() -> Iterator[Metric]:
    yield _by(
        "a2a_runs", "Queued, active and parked runs of agents.", "status", runs.count_by_status()
    )
    used = registry.queues_in_use()
    serving = workers.count_serving(used, workers.list_seen())
    yield _by("a2a_queue_workers", "Live processes that take work from a queue.", "queue", serving)
    loads = {queue: runs.measure_queue(queue) for queue in sorted(used | serving.keys())}
    yield _by(
        "a2a_queue_depth",
        f"Runs that wait for a slot, up to {runs.MAX_COUNTED:,}; without parked ones.",
        "queue",
        {queue: depth for queue, (depth, _) in loads.items()},
    )
    yield _by(
        "a2a_queue_oldest_seconds",
        "Seconds since the oldest run that could start became due; without parked ones.",
        "queue",
        {queue: age for queue, (_, age) in loads.items()},
    )


def _people() -> Iterator[Metric]:
    """Yield the questions by agent. The oldest tasks come first, so the first one of an agent is its oldest."""
    known, now = set(registry.slugs()), timezone.now()
    count, oldest = Counter[str](), dict[str, float]()
    for slug, since in list_waiting().values_list("agent", "status_at")[:MAX_WAITING]:
        agent = slug if slug in known else OTHERS
        count[agent] += 1
        oldest.setdefault(agent, max(0.0, (now - since).total_seconds()))
    yield _by(
        "a2a_waiting_for_people",
        f"Tasks that wait for an answer or an authorization, of the {MAX_WAITING:,} oldest.",
        "agent",
        count,
    )
    yield _by(
        "a2a_waiting_for_people_oldest_seconds",
        "Seconds since the oldest of these tasks began to wait.",
        "agent",
        oldest,
    )


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
