"""The observation of a request, for all bindings: from its arrival to the end of its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from types import TracebackType
from typing import Any, Protocol

from opentelemetry.trace import Span, SpanKind

from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.errors import A2AError
from a2a_tasks.telemetry import tracing
from a2a_tasks.telemetry.counters import UNKNOWN, first_event, requests, seconds, streams_open
from a2a_tasks.telemetry.trace_context import TraceContext

__all__ = ["ObservedRequest", "Stream"]

OK = "ok"
#: The first status of HTTP that is a failure of the server.
SERVER_ERROR = 500


class Stream(Protocol):
    """A stream of events, as its observer sees it (`a2a_tasks.streaming.stream`)."""

    on_first_event: Callable[[], None] | None

    def on_close(self, callback: Callable[[], None]) -> None:
        """Register a callback for the end of the stream."""


class ObservedRequest:
    """The observation of one request. The binding answers inside this context manager, and reports errors to it.

    `negotiate` sets operation and dialect, so that a client can invent no label.
    """

    __slots__ = (
        *("_begun", "_code", "_headers", "_notes", "_recorded", "_span", "_token"),
        *("agent", "binding", "dialect", "method"),
    )

    def __init__(self) -> None:
        #: The operation by its name in A2A 1.0, and the code of the dialect.
        self.method = self.dialect = UNKNOWN
        #: The slug of the agent.
        self.agent = ""
        self.binding: Binding | None = None
        self._code, self._recorded = OK, False
        self._headers: Mapping[str, str] = {}
        self._span: Span | None = None
        self._token: Any = None
        self._notes: dict[str, str] = {}

    def by(self, binding: Binding, headers: Mapping[str, str]) -> ObservedRequest:
        """Set the binding, and the headers with the client's trace context; returns the request, to be entered."""
        self.binding, self._headers = binding, headers
        return self

    def __enter__(self) -> ObservedRequest:
        self._begun = time.perf_counter()
        if tracing.is_on():
            parent = TraceContext.read(self._headers).as_parent()
            self._span = tracing.begin(UNKNOWN, SpanKind.SERVER, parent=parent)
            self._token = tracing.enter(self._span)
            self._notes = tracing.collect_notes()
        return self

    def note_negotiation(self, *, method: str, dialect: str, agent: str, principal: str) -> None:
        """Set what the negotiation found: the operation (A2A 1.0 §5.3), the code of the dialect, the agent's slug."""
        self.method, self.dialect, self.agent = method or UNKNOWN, dialect, agent
        if self._span is not None:
            self._span.update_name(self.method)
            self._notes |= {"gen_ai.agent.name": agent, **tracing.user(principal)}

    def note_fault(self, fault: Exception) -> None:
        """Set the error that the client gets."""
        self._code = type(fault).__name__
        status = fault.http_status if isinstance(fault, A2AError) else 0
        tracing.fail(self._span, self._code, ours=status >= SERVER_ERROR)

    def streams(self, stream: Stream) -> None:
        """Record that the answer begins, and observe its stream until it is closed."""
        self._record()
        opened = streams_open.labels(self.binding)
        opened.inc()
        stream.on_close(opened.dec)
        if self.method == "SendStreamingMessage":
            accepted, first = time.perf_counter(), first_event.labels(self.agent)
            stream.on_first_event = lambda: first.observe(time.perf_counter() - accepted)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if fault is not None and self._code == OK:  # the client left
            self._code = type(fault).__name__
            tracing.fail(self._span, self._code, ours=False)
        self._record()
        if self._span is not None:
            about = {"a2a.method.name": self.method, "a2a_host.dialect": self.dialect}
            self._span.set_attributes(
                {**about, "a2a_host.binding": str(self.binding), **self._notes}
            )
            tracing.leave(self._span, self._token)

    def _record(self) -> None:
        """Record the request once: a stream when it begins."""
        if self._recorded:
            return
        self._recorded = True
        lasted = time.perf_counter() - self._begun
        _seconds(self.method, self.binding).observe(lasted)
        _requests(self.method, self.dialect, self.binding, self._code).inc()


# The look-up of a child by its labels is the slowest part of a record.
_seconds, _requests = cache(seconds.labels), cache(requests.labels)
