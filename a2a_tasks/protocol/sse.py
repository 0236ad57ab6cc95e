"""Server-sent events (WHATWG HTML §9.2), as A2A uses them: one `data:` line per event, `id:` = event number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from a2a_tasks.protocol.jsontext import on_one_line

__all__ = [
    "FAREWELL",
    "KEEP_ALIVE",
    "EventId",
    "error_frame",
    "frame",
    "read_event_id",
    "write_gap",
]

_EVENT_ID = re.compile(r"(\d{1,9})(?:-([0-9a-f]{1,32}))?", re.ASCII)

#: Comments have no empty line behind them: readers such as httpx-sse take that for an event once they have seen an id.
KEEP_ALIVE = b": keep-alive\n"
#: The end of a stream whose process stops, while its task goes on. `retry:` is in milliseconds: the process accepts
#: connections for a second more.
FAREWELL = b": this process stops and the task goes on, subscribe again\nretry: 1000\n\n"


@dataclass(frozen=True, slots=True)
class EventId:
    """The last event a client has seen: its number, and the mark of its task if the task took over an id."""

    number: int
    mark: str = ""


def read_event_id(text: str) -> EventId | None:
    """Return the event that a `Last-Event-ID` names; None if the host never sent such an id."""
    match = _EVENT_ID.fullmatch(text.strip())
    return EventId(int(match[1]), match[2] or "") if match else None


def frame(number: int, data: bytes, mark: str = "") -> bytes:
    """Return one event: the JSON is on one line for every reader."""
    if not data.isascii():
        data = on_one_line(data)
    if mark:
        return b"id: %d-%b\ndata: %b\n\n" % (number, mark.encode(), data)
    return b"id: %d\ndata: %b\n\n" % (number, data)


def write_gap(before: int) -> bytes:
    """Return the comment that tells a client about removed events."""
    return b": events before %d were removed\n" % before


def error_frame(data: bytes, *, named: bool) -> bytes:
    """Return an error frame for a begun stream; `named`: with the line `event: error` (A2A 1.0)."""
    return (b"event: error\n" if named else b"") + b"data: %b\n\n" % on_one_line(data)
