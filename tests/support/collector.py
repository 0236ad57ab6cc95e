"""A collector of traces on loopback: it takes OTLP over HTTP, as a collector of OpenTelemetry does, and keeps the spans."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

__all__ = ["Collector", "SeenSpan", "collector"]

#: Seconds anything may take; reached only when something is broken.
PATIENCE = 40.0
KINDS = SpanMessage.SpanKind


@dataclass(frozen=True)
class SeenSpan:
    """One span, as it came."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    #: The ids of the spans that it links to, with their traces.
    links: list[tuple[str, str]]
    attributes: dict[str, Any]
    #: The names of its events.
    events: list[str]
    failed: bool
    state: str
    #: The attributes of the process that sent it.
    process: dict[str, Any]


def _read(attributes: Sequence[KeyValue]) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value")
        for one in attributes
    }


def _spans(body: bytes) -> Iterator[SeenSpan]:
    for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in sent.scope_spans:
            for span in scope.spans:
                yield SeenSpan(
                    span.name,
                    KINDS.Name(span.kind).removeprefix("SPAN_KIND_"),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                    _read(span.attributes),
                    [event.name for event in span.events],
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    span.trace_state,
                    _read(sent.resource.attributes),
                )


@dataclass
class Collector:
    """The spans that have come, and where to send more."""

    url: str = ""
    spans: list[SeenSpan] = field(default_factory=list)
    #: Clear while exports are not answered.
    answers: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a process that sends its spans here, soon."""
        return {
            "A2A_TRACES": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }

    def take(self, body: bytes) -> None:
        """Keep the spans of an export."""
        with self._changed:
            self.spans += _spans(body)
            self._changed.notify_all()

    def wait(self, so: Callable[[list[SeenSpan]], Any]) -> Any:
        """Wait until the spans fulfil a condition; return its value."""
        with self._changed:
            found = self._changed.wait_for(lambda: so(self.spans), PATIENCE)
        assert found, f"these spans came: {[(s.name, s.trace, s.parent) for s in self.spans]}"
        return found

    async def named(self, name: str, trace: str = "", count: int = 1) -> list[SeenSpan]:
        """Do as `wait_named`, while the loop goes on: what serves in it may have to answer first."""
        return await asyncio.to_thread(self.wait_named, name, trace, count)

    def wait_named(self, name: str, trace: str = "", count: int = 1) -> list[SeenSpan]:
        """Wait for so many spans of that name, in a trace if it is named; return all of them."""

        def find(spans: list[SeenSpan]) -> list[SeenSpan] | None:
            found = [s for s in spans if s.name == name and trace in ("", s.trace)]
            return found if len(found) >= count else None

        found: list[SeenSpan] = self.wait(find)
        return found


@contextmanager
def collector() -> Iterator[Collector]:
    """Collect spans for as long as the block lasts."""
    made = Collector()
    made.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces", self.path
            if not made.answers.wait(PATIENCE):
                return
            made.take(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield made
    finally:
        made.answers.set()
        server.shutdown()
        server.server_close()
        serving.join()
