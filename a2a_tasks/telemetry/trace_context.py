"""The trace context of a request (W3C Trace Context), read from headers and stored with a run.

Broken or oversized values are ignored, and never logged: a client may send anything. Baggage is not read.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context

__all__ = ["NONE", "AttemptBefore", "TraceContext", "note_attempt", "span_id_of", "trace_in"]

#: Maximum number of characters of a `tracestate` that is kept (W3C Trace Context §3.3.1.5).
MAX_STATE_LENGTH = 512
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})")
_KEY = r"[a-z][-_*/0-9a-z]{0,255}|[0-9a-z][-_*/0-9a-z]{0,240}@[a-z][-_*/0-9a-z]{0,13}"
_MEMBER = re.compile(
    rf"({_KEY})=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
#: Maximum number of members of a `tracestate` (W3C Trace Context §3.3.1.1).
MAX_MEMBERS = 32


class AttemptBefore(NamedTuple):
    """The previous attempt of a run, which died, or was parked or handed back. The next attempt links to its span."""

    #: The id of its span, as in headers.
    span_id: str
    #: Its number.
    attempt: int
    #: When it began, and when its death was noticed, in seconds since the epoch; 0 = it has sent its span itself.
    begun: float = 0.0
    noticed: float = 0.0

    @classmethod
    def of(cls, token: str, attempt: int, begun: float = 0.0) -> AttemptBefore:
        """Return the attempt with that lease and number."""
        return cls(f"{span_id_of(token):016x}", attempt, begun, time.time() if begun else 0.0)


def span_id_of(token: str) -> int:
    """Return the id of an attempt's span, a hash of the token of its lease: other processes can know it, too."""
    return int.from_bytes(hashlib.sha256(token.encode()).digest()[:8], "big") or 1


def trace_in(request: str) -> TraceContext:
    """Return the trace context in the stored request of a run."""
    return _decode(request).trace if '"trace"' in request else NONE


def note_attempt(request: str, before: AttemptBefore) -> str:
    """Return the stored request of a run with the attempt that has ended; unchanged if it has no trace."""
    if '"trace"' not in request:
        return request
    members = json.loads(request)
    return json.dumps({**members, "before": before}) if "trace" in members else request


class TraceContext(NamedTuple):
    """A trace, and the span in it that is the parent of the next spans."""

    #: In the form of the header; empty = none.
    traceparent: str = ""
    tracestate: str = ""

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> TraceContext:
        """Return the trace context in headers, by their lower-case names; none if it is broken."""
        parent = _PARENT.fullmatch(headers.get("traceparent", "").strip())
        if not parent:
            return NONE
        state = headers.get("tracestate", "").strip()
        return cls(f"00-{parent[1]}", state if _is_sound(state) else "")

    @classmethod
    def current(cls) -> TraceContext:
        """Return the context of the current span; none if there is none."""
        return cls.of(trace.get_current_span().get_span_context())

    @classmethod
    def of(cls, span: trace.SpanContext) -> TraceContext:
        """Return the context of a span."""
        if not span.is_valid:
            return NONE
        # Only the flag "sampled" is defined for version 00.
        parent = f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags & 1:02x}"
        return cls(parent, span.trace_state.to_header())

    @property
    def trace_id(self) -> int:
        """The id of the trace; 0 = none."""
        return int(self.traceparent[3:35] or "0", 16)

    def within(self, span_id: int) -> trace.SpanContext:
        """Return the context of the span with this id in the trace, in another process."""
        return trace.SpanContext(
            self.trace_id,
            span_id,
            is_remote=True,
            trace_flags=trace.TraceFlags(int(self.traceparent[53:] or "0", 16)),
            trace_state=trace.TraceState.from_header([self.tracestate])
            if self.tracestate
            else None,
        )

    def as_parent(self) -> Context:
        """Return a context in which the span is the parent of new spans. Without a span, they begin a trace."""
        if not self.traceparent:
            return Context()
        parent = self.within(int(self.traceparent[36:52], 16))
        return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())


def _is_sound(state: str) -> bool:
    if not state or len(state) > MAX_STATE_LENGTH:
        return False
    matches = [_MEMBER.fullmatch(member.strip(" \t")) for member in state.split(",")]
    keys = {match[1] for match in matches if match is not None}
    return len(keys) == len(matches) <= MAX_MEMBERS


NONE = TraceContext()


class StoredTrace(msgspec.Struct):
    """The stored request of a run, as far as it concerns traces."""

    trace: TraceContext = NONE


_decode = msgspec.json.Decoder(StoredTrace).decode
