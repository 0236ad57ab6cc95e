"""`/metrics`, for Prometheus: the counters of this process, and gauges from the tables, equal in all processes.

Workers have no web server: `metrics_port.py` serves their counters. See docs/decisions/0033.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable
from typing import Generic, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from a2a_project.gauges import say_database
from a2a_project.health import ask_database
from a2a_project.shared_read import shared_reads
from a2a_tasks.access.authentication import identify
from a2a_tasks.access.credentials import networks
from a2a_tasks.bindings.http import Receive, Request, Scope, Send, respond, without_body
from a2a_tasks.conf import conf
from a2a_tasks.protocol.errors import (
    InsufficientScope,
    Overloaded,
    RateLimited,
    Unauthenticated,
    WrongCredentials,
)
from a2a_tasks.store.db import run_in_thread

__all__ = ["PATH", "SCOPE", "serve"]

T = TypeVar("T")
PATH = "/metrics"
#: The scope of callers that may read metrics.
SCOPE = "metrics"
NOT_FOUND = b'{"error":"not found"}'
#: Most seconds that the database has to answer.
PATIENCE = 5.0
UNAVAILABLE = b'{"status":"unavailable"}'


class ReadResult(NamedTuple, Generic[T]):
    """The answer of a read that ended in time."""

    found: T


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
    """Return the seconds that the database has to answer: at most half of those that Prometheus waits."""
    try:
        return min(PATIENCE, float(request.header("x-prometheus-scrape-timeout-seconds")) / 2)
    except ValueError:
        return PATIENCE


async def _text(seconds: float) -> bytes:
    """Return all metrics; without the gauges from the tables if these were not read within so many seconds."""
    answered, read = await asyncio.gather(
        _in_time(run_in_thread(ask_database), seconds),
        _in_time(asyncio.shield(shared_reads.join()), seconds),
    )
    standing = CollectorRegistry()
    about = say_database(answered=answered is not None, read=read is not None)
    standing.register(_DatabaseGauges([*about, *(read.found if read else ())]))
    return generate_latest() + generate_latest(standing)


async def _in_time(read: Awaitable[T], seconds: float) -> ReadResult[T] | None:
    """Return what is read, or None if the database is away or takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return ReadResult(await read)
    except (Overloaded, TimeoutError):
        return None


class _DatabaseGauges(Collector):
    """The gauges from the tables."""

    def __init__(self, found: list[Metric]) -> None:
        self._found = found

    def collect(self) -> list[Metric]:
        """Return the metrics."""
        return self._found
