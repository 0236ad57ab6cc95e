"""The exporter of spans, for texts of frameworks: the encoder of OTLP loses a whole batch for one text that is no UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Status

__all__ = ["SoundExporter"]


class SoundExporter(OTLPSpanExporter):
    """Sends spans, with half a surrogate pair in their texts as an escape (`\\ud83d`)."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans of a batch."""
        return super().export([span if _is_sound(span) else _mend(span) for span in spans])


def _is_sound(span: ReadableSpan) -> bool:
    """Return whether the texts that are no attributes can be encoded. A wrong attribute is lost alone."""
    try:
        "".join(_texts(span)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(span: ReadableSpan) -> Iterable[str]:
    yield span.name
    yield span.status.description or ""
    for event in span.events:
        yield event.name


def _mend(span: ReadableSpan) -> ReadableSpan:
    said = span.status.description
    return ReadableSpan(
        _sound(span.name),
        span.context,
        span.parent,
        span.resource,
        _sound_members(span.attributes),
        [Event(_sound(e.name), _sound_members(e.attributes), e.timestamp) for e in span.events],
        span.links,
        span.kind,
        status=Status(span.status.status_code, said and _sound(said)),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _sound_members(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    found = (attributes or {}).items()
    return {name: _sound(value) if isinstance(value, str) else value for name, value in found}


def _sound(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
