"""The counters of a process without a web server (workers, pushers, gRPC), for Prometheus, at a port of its own."""

from __future__ import annotations

import logging

from prometheus_client import start_http_server

from a2a_tasks.conf import conf

__all__ = ["listen"]

logger = logging.getLogger(__name__)


def listen() -> None:
    """Serve the counters at A2A_METRICS_LISTEN, if that is set and free, until this process ends."""
    address = str(conf.METRICS_LISTEN)
    if not address:
        return
    host, _, port = address.rpartition(":")
    try:
        start_http_server(int(port), host.strip("[]") or "127.0.0.1")
    except (OSError, ValueError, OverflowError) as fault:
        logger.warning("no metrics of this process at A2A_METRICS_LISTEN=%s: %s", address, fault)
