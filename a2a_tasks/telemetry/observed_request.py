"""The observation of a request, for all bindings: from its arrival to the end of its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from a2a_tasks.protocol.binding import Binding
from a2a_tasks.telemetry.counters import UNKNOWN, first_event, requests, seconds, streams_open

__all__ = ["ObservedRequest", "Stream"]

OK = "ok"


class Stream(Protocol):
    """A stream of events, as its observer sees it (`a2a_tasks.streaming.stream`)."""

    on_first_event: Callable[[], None] | None

    def on_close(self, callback: Callable[[], None]) -> None:
        """Register a callback for the end of the stream."""


class ObservedRequest:
    """A request and what is known of it so far. The binding enters it around the answer, and reports an error to it.

    `negotiate` sets operation and dialect, so that a client can invent no label.
    """

    __slots__ = ("_begun", "_code", "_recorded", "agent", "binding", "dialect", "method")

    def __init__(self) -> None:
        #: The operation by its name in A2A 1.0, and the code of the dialect.
        self.method = self.dialect = UNKNOWN
        #: The slug of the agent.
        self.agent = ""
        self.binding: Binding | None = None
        self._code, self._recorded = OK, False

    def by(self, binding: Binding) -> ObservedRequest:
        """Set the binding; returns the request, to be entered."""
        self.binding = binding
        return self

    def __enter__(self) -> ObservedRequest:
        self._begun = time.perf_counter()
        return self

    def negotiated(self, *, method: str, dialect: str, agent: str) -> None:
        """Set what the negotiation found: the operation (A2A 1.0 §5.3), the code of the dialect, the agent's slug."""
        self.method, self.dialect, self.agent = method or UNKNOWN, dialect, agent

    def failed(self, fault: Exception) -> None:
        """Set the error that the client gets."""
        self._code = type(fault).__name__

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
        self._record()

    def _record(self) -> None:
        """Record the request once: a stream when it begins, so that its code is that of its beginning."""
        if self._recorded:
            return
        self._recorded = True
        seconds.labels(self.method, self.binding).observe(time.perf_counter() - self._begun)
        requests.labels(self.method, self.dialect, self.binding, self._code).inc()
