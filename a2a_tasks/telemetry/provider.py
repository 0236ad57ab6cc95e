"""The provider of spans (OpenTelemetry SDK, extra `otel`), from the standard OTEL_* variables.

The spans go to a collector as OTLP over HTTP, from a thread with a bounded queue: if the collector is away or
hangs, spans are lost, and nothing else is affected.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable

from opentelemetry import trace

from a2a_tasks import process
from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottleFilter
from a2a_tasks.telemetry.tracing import is_on, look_again

__all__ = ["SHORT_MILLISECONDS", "start_provider"]

logger = logging.getLogger(__name__)
#: Seconds that the end of the process waits for the last spans.
FLUSH_SECONDS = 2.0
#: Milliseconds between two exports, if OTEL_BSP_SCHEDULE_DELAY is not set: a killed process loses the spans that wait.
EXPORT_MILLISECONDS = 1000
#: For the process of an agent, which may be killed as soon as it has no turn.
SHORT_MILLISECONDS = 200
#: Seconds for an export and its retries, if none of these variables is set.
EXPORT_SECONDS = 5.0
TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
#: Loggers that write a line for each export that fails.
THROTTLED = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)


def start_provider(*, delay: int = EXPORT_MILLISECONDS) -> None:
    """Send the spans of this process, if A2A_TRACES is set. Does nothing if the project has a provider of its own.

    `delay`: milliseconds between two exports, unless the operator sets them. Call it in the process itself, not before
    a fork.
    """
    look_again()
    if not conf.TRACES or is_on():
        return
    try:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        from a2a_tasks.telemetry.sound_spans import SoundExporter  # noqa: PLC0415
    except ImportError:
        logger.warning("A2A_TRACES is set, but the extra is missing: pip install 'a2a-host[otel]'")
        return
    for name in THROTTLED:
        logging.getLogger(name).addFilter(ThrottleFilter())
    # The SDK would wait half a minute at the end of the process for a collector that hangs.
    provider = TracerProvider(resource=Resource.create(_describe()), shutdown_on_exit=False)
    is_set = os.environ.keys()
    exporter = SoundExporter(timeout=None if {*TIMEOUTS} & is_set else EXPORT_SECONDS)
    milliseconds = None if "OTEL_BSP_SCHEDULE_DELAY" in is_set else delay
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=milliseconds))
    trace.set_tracer_provider(provider)
    look_again()
    _flush_at_exit(provider.shutdown)


def _describe() -> dict[str, str]:
    """Return the names of service and process, unless the operator has set them."""
    names = {"service.name": "a2a-host", "service.instance.id": process.name()}
    if os.environ.get("OTEL_SERVICE_NAME"):
        del names["service.name"]
    named = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return {name: value for name, value in names.items() if f"{name}=" not in named}


def _flush_at_exit(shutdown: Callable[[], None]) -> None:
    """Send the last spans at the end of this process, within FLUSH_SECONDS."""
    begun, done, pid = threading.Event(), threading.Event(), os.getpid()

    def wait_and_send() -> None:
        begun.wait()
        shutdown()
        done.set()

    def flush() -> None:
        if os.getpid() == pid:
            begun.set()
            done.wait(FLUSH_SECONDS)

    # At the end of the process no thread can be started.
    threading.Thread(target=wait_and_send, name="spans", daemon=True).start()
    atexit.register(flush)
