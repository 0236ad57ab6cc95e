"""The background work of every serving process, for HTTP and gRPC alike."""

from __future__ import annotations

import functools
import logging

from django.core.exceptions import ImproperlyConfigured

from a2a_push import delivery
from a2a_tasks import process, process_lifetime
from a2a_tasks.access.startup_notice import say_who_may_come
from a2a_tasks.conf import conf
from a2a_tasks.execution import dispatch, presence
from a2a_tasks.outages import ThrottleFilter
from a2a_tasks.store.workers import WorkerKind
from a2a_tasks.telemetry import loop_lag
from a2a_tasks.telemetry.provider import start_provider

__all__ = ["register"]


async def deliver() -> None:
    """Send webhooks from this process, if it also runs the agents; otherwise workers do."""
    if not dispatch.by_workers():
        await delivery.begin(alone=True)


async def _begin_traces() -> None:
    start_provider()


#: Loggers of libraries that write a line for each bad request of a stranger.
THROTTLED = ("grpclib.server", "uvicorn.error")


def register(kind: WorkerKind = WorkerKind.WEB) -> None:
    """Register all background work, and throttle the log. Call it once per process.

    Raises ImproperlyConfigured in an environment of its own: its agents are not those of the host.
    """
    if conf.ENVIRONMENT:
        raise ImproperlyConfigured(
            "A2A_ENVIRONMENT is for workers, and this process serves requests: unset it here"
        )
    process.raise_descriptor_limit()
    for name in THROTTLED:
        logging.getLogger(name).addFilter(ThrottleFilter())
    process_lifetime.on_start(_begin_traces)
    # First of these, since the first to start is the last to stop: it is present as long as the process has runs.
    process_lifetime.on_start(functools.partial(presence.begin, kind, dispatch.load))
    process_lifetime.on_start(dispatch.ensure_started)
    process_lifetime.on_start(deliver)
    process_lifetime.on_start(loop_lag.begin)
    process_lifetime.on_start(say_who_may_come)
