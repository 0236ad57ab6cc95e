"""The spans of this host. Without an OpenTelemetry provider that records, spans are None.

No function here raises, whatever the provider does, and none waits. `attributes` has the names of the attributes.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode

from a2a_tasks.conf import conf
from a2a_tasks.outages import ThrottledLogger
from a2a_tasks.telemetry.attributes import of_task
from a2a_tasks.telemetry.redaction import redact
from a2a_tasks.telemetry.trace_context import NONE, TraceContext

__all__ = [
    "content",
    "begin",
    "call_span",
    "collect_notes",
    "current",
    "end",
    "enter",
    "fail",
    "fail_current",
    "headers",
    "is_on",
    "join",
    "leave",
    "look_again",
    "note",
    "note_status",
    "shows_content",
    "span",
    "user",
]

SCOPE = "a2a_host"
_broken = ThrottledLogger(logging.getLogger(__name__), "the provider of traces failed")
#: Maximum number of characters of an attribute with content.
MAX_CONTENT = 4096
Attributes = Mapping[str, str | int | float | bool]

#: The id for the next span that this task begins; 0 = any.
_chosen: ContextVar[int] = ContextVar("span_id", default=0)
#: The attributes of every span that is begun for the present task.
_about: ContextVar[Attributes | None] = ContextVar("about", default=None)
#: The notes about the present operation.
_notes: ContextVar[dict[str, str] | None] = ContextVar("notes", default=None)
#: Seconds between two looks for a provider, as long as there is none.
LOOK_SECONDS = 1.0


class KnownTracer:
    """The tracer of the provider; as long as there is none, the time of the next look for it."""

    tracer: trace.Tracer | None = None
    look_at = 0.0


class _Ids:
    """The ids of a provider's generator, except for a span whose id is chosen."""

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ids, name)

    def generate_span_id(self) -> int:
        """Return the id for the next span."""
        return _chosen.get() or int(self._ids.generate_span_id())


def _tracer() -> trace.Tracer | None:
    """Return the tracer, also that of a provider which the surrounding project has set; None = nothing records."""
    if KnownTracer.tracer is None and (now := time.monotonic()) >= KnownTracer.look_at:
        KnownTracer.look_at = now + LOOK_SECONDS
        try:
            KnownTracer.tracer = _find_tracer()
        except Exception as fault:  # noqa: BLE001 - of a provider that cannot be loaded
            _broken.warning(fault)
    return KnownTracer.tracer


def _find_tracer() -> trace.Tracer | None:
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    tracer = provider.get_tracer(SCOPE)
    if hasattr(tracer, "id_generator"):  # of the SDK
        tracer.id_generator = _Ids(tracer.id_generator)
    return tracer


def look_again() -> None:
    """Look for the provider now: it has been set, or replaced."""
    KnownTracer.tracer, KnownTracer.look_at = None, 0.0


def is_on() -> bool:
    """Return whether spans are recorded."""
    if KnownTracer.tracer is None and time.monotonic() >= KnownTracer.look_at:
        return _tracer() is not None
    return KnownTracer.tracer is not None


def current() -> TraceContext:
    """Return the trace context of the current span."""
    return TraceContext.current() if is_on() else NONE


def begin(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes | None = None,
    *,
    parent: Context | None = None,
    links: Sequence[Link] = (),
    start: int | None = None,
    id_: int = 0,
) -> Span | None:
    """Begin a span; None if nothing records.

    `parent`: None = the current span. `start`: nanoseconds since the epoch. `id_`: the id of the span, if the provider
    lets it be chosen.
    """
    tracer = _tracer()
    if tracer is None:
        return None
    token = _chosen.set(id_) if id_ else None
    try:
        about = {**(_about.get() or {}), **(attributes or {})}
        return tracer.start_span(name, parent, kind, about, links, start)
    except Exception as fault:  # noqa: BLE001 - of a sampler or a processor of the project
        _broken.warning(fault)
        return None
    finally:
        if token is not None:
            _chosen.reset(token)


def join(parent: TraceContext, task_id: str, context_id: str) -> None:
    """Continue a trace in the present coroutine and the tasks that it starts; all spans name the task and its context."""
    _about.set(of_task(task_id, context_id))
    contexts.attach(parent.as_parent())


def enter(begun: Span | None) -> Any:
    """Make the span the current one; returns the token for `leave`."""
    return None if begun is None else contexts.attach(trace.set_span_in_context(begun))


def leave(begun: Span | None, token: Any) -> None:
    """End the span; the previous one is the current one again."""
    end(begun)
    if begun is not None:
        contexts.detach(token)


def end(begun: Span | None, at: int | None = None) -> None:
    """End the span: now, or at this time in nanoseconds since the epoch."""
    if begun is not None:
        try:
            begun.end(at)
        except Exception as fault:  # noqa: BLE001 - of a processor of the project
            _broken.warning(fault)


def fail(begun: Span | None, error: str, *, ours: bool = True) -> None:
    """Set the error of a span: the name of a class. `ours`: the host or agent failed, so the status is ERROR."""
    if begun is not None:
        begun.set_attribute("error.type", error)
        if ours:
            begun.set_status(Status(StatusCode.ERROR))


def fail_current(error: str) -> None:
    """Set the error of the current span, and its status."""
    if is_on():
        fail(trace.get_current_span(), error)


def collect_notes() -> dict[str, str]:
    """Return the dictionary for the notes of the present task from now on: to set all at once is cheaper."""
    notes: dict[str, str] = {}
    _notes.set(notes)
    return notes


def note(attributes: Mapping[str, str]) -> None:
    """Note attributes of the present operation."""
    if (notes := _notes.get()) is not None:
        notes.update(attributes)


@contextlib.contextmanager
def span(
    name: str, kind: SpanKind = SpanKind.INTERNAL, attributes: Attributes | None = None, **how: Any
) -> Iterator[Span | None]:
    """Make a span the current one for the block; an exception is its error. Further arguments are those of `begin`."""
    begun = begin(name, kind, attributes, **how)
    if begun is None:
        yield None
        return
    token = enter(begun)
    try:
        yield begun
    except BaseException as fault:
        fail(begun, type(fault).__name__)
        raise
    finally:
        leave(begun, token)


def user(principal: str) -> dict[str, str]:
    """Return the attribute for a principal: a keyed hash of it, or the name itself with A2A_TRACE_CONTENT."""
    if not principal:
        return {}
    return {"user.id": principal if conf.TRACE_CONTENT else _hash(principal, settings.SECRET_KEY)}


@lru_cache(maxsize=1000)
def _hash(principal: str, key: str) -> str:
    return hmac.digest(key.encode(), f"user.id {principal}".encode(), "sha256").hex()[:16]


def shows_content() -> bool:
    """Return whether spans have content."""
    return is_on() and bool(conf.TRACE_CONTENT)


def content(begun: Span | None, name: str, text: str) -> None:
    """Set an attribute with content, if A2A_TRACE_CONTENT allows it: its first 4096 characters, without credentials."""
    if begun is None or not conf.TRACE_CONTENT:
        return
    # More is redacted than is shown, so that no credential is cut in two before.
    sound = redact(text[: 2 * MAX_CONTENT]).encode(errors="backslashreplace").decode()
    begun.set_attribute(name, sound[:MAX_CONTENT])


def call_span(
    name: str,
    method: str,
    url: str,
    kind: SpanKind = SpanKind.CLIENT,
    about: Attributes | None = None,
    **how: Any,
) -> AbstractContextManager[Span | None]:
    """Return the span of a call to another server, to be entered; it has the host, not the path. Further arguments are those of `begin`."""
    if not is_on():
        return contextlib.nullcontext()
    host = ""
    with contextlib.suppress(ValueError):
        host = urlsplit(url).hostname or ""
    called = {"http.request.method": method, "server.address": host}
    return span(name, kind, {**called, **(about or {})}, **how)


def note_status(begun: Span | None, status: int | None) -> None:
    """Set the status of the answer to a call, if there was one."""
    if begun is not None and status is not None:
        begun.set_attribute("http.response.status_code", status)


def headers() -> dict[str, str]:
    """Return the headers for a call to another server: `traceparent`, and no `tracestate`, which is a client's."""
    parent = current().traceparent
    return {"traceparent": parent} if parent else {}
