"""Server-sent events (WHATWG HTML §9.2), as A2A uses them: one `data:` line an event, `id:` = event number."""

from __future__ import annotations

__all__ = ["KEEP_ALIVE", "error_frame", "frame"]

KEEP_ALIVE = b": keep-alive\n\n"


def frame(number: int, data: bytes) -> bytes:
    """One event. JSON text has no raw line breaks, so one line it is."""
    return b"id: %d\ndata: %b\n\n" % (number, data)


def error_frame(data: bytes, *, named: bool) -> bytes:
    """An error after the stream has begun; `named`: with the line `event: error` (A2A 1.0)."""
    return (b"event: error\n" if named else b"") + b"data: %b\n\n" % data
