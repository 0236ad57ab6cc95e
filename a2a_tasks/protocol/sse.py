"""Server-sent events (WHATWG HTML §9.2), as A2A uses them: one `data:` line an event, `id:` = event number."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FAREWELL", "KEEP_ALIVE", "EventId", "error_frame", "frame", "read_event_id", "removed"]

_EVENT_ID = re.compile(r"(\d{1,9})(?:-([0-9a-f]{1,32}))?", re.ASCII)

KEEP_ALIVE = b": keep-alive\n\n"
#: The end of a stream whose process stops, while its task goes on. `retry:` is in milliseconds.
FAREWELL = b": this process stops and the task goes on, subscribe again\nretry: 100\n\n"


@dataclass(frozen=True, slots=True)
class EventId:
    """What a client says it has seen last: an event's number, and the mark of its task if that took over an id."""

    number: int
    mark: str = ""


def read_event_id(text: str) -> EventId | None:
    """The event a `Last-Event-ID` names; None if it is none of ours."""
    match = _EVENT_ID.fullmatch(text.strip())
    return EventId(int(match[1]), match[2] or "") if match else None


def frame(number: int, data: bytes, mark: str = "") -> bytes:
    """One event. JSON text has no raw line breaks, so one line it is."""
    if mark:
        return b"id: %d-%b\ndata: %b\n\n" % (number, mark.encode(), data)
    return b"id: %d\ndata: %b\n\n" % (number, data)


def removed(before: int) -> bytes:
    """The comment that tells a client of events it will not get."""
    return b": events before %d were removed\n\n" % before


def error_frame(data: bytes, *, named: bool) -> bytes:
    """An error after the stream has begun; `named`: with the line `event: error` (A2A 1.0)."""
    return (b"event: error\n" if named else b"") + b"data: %b\n\n" % data
