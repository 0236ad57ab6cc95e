"""Spans that are kept in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from a2a_tasks.telemetry import tracing

__all__ = ["Spans", "spans"]


class Spans:
    """The spans that have ended."""

    def __init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._kept = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of that name, the first to end first."""
        return [span for span in self._kept.get_finished_spans() if span.name == name]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Record spans in this process, as a project does that configures OpenTelemetry itself."""
    made = Spans()
    with monkeypatch.context() as patched:
        patched.setattr(trace, "_TRACER_PROVIDER", made.provider)
        tracing.look_again()
        yield made
    tracing.look_again()
    made.provider.shutdown()
