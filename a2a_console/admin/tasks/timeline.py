"""The events and files of a task for its page. Each query reads a slice by key; the database cuts bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from a2a_console.admin.widgets.formatting import FormattedBody, escape_name, format_body, parse_body
from a2a_console.admin.widgets.parts import Reading, ShownPart, join_texts, read, render_parts
from a2a_console.excerpts import LIMIT, select_start, size
from a2a_tasks.models import Artifact, Event, Message, StoredFile, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = [
    *("EVENTS", "ROWS", "EventEntry", "Moments", "Window"),
    *("body_of", "entries", "files", "find_call", "fold", "member", "notes"),
]

#: Events on one page.
EVENTS = 200
#: The largest number of files on one page.
ROWS = 100
#: The largest body in characters that is read whole although it is shown cut, and the number of these on one page.
WHOLE, WHOLES = 400_000, 8
#: The largest number of characters of an artifact's id.
NAME = 80
#: The JSON documents of events by number, or of artifacts by position.
Documents = Mapping[int, Any]


@dataclass(frozen=True, kw_only=True)
class Window:
    """The range of events on a page, by number, and those of its neighbours."""

    first: int
    last: int
    end: int

    @classmethod
    def at(cls, text: str, end: int) -> Window:
        """Return the window that begins at the requested event; by default the newest one.

        The newest window begins at a round number, so that its lines stay while events are added.
        """
        half = EVENTS // 2
        newest = max(0, end - 1 - half) // half * half + 1
        # The database would refuse a number that is longer than any event's.
        first = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else newest  # noqa: PLR2004
        first = min(max(1, first), max(1, end))
        return cls(first=first, last=min(end, first + EVENTS - 1), end=end)

    @property
    def older(self) -> int | None:
        """The first event of the page before; None = there is none."""
        return max(1, self.first - EVENTS) if self.first > 1 else None

    @property
    def newer(self) -> int | None:
        """The first event of the page after; None = there is none."""
        return self.last + 1 if self.last < self.end else None


@dataclass(frozen=True, kw_only=True)
class EventEntry:
    """One line of the timeline: an event, or consecutive chunks of one artifact."""

    first: int
    last: int
    at: datetime
    run: int | None
    kind: str
    #: The subject: the state, the sender of a message, or the artifact.
    what: str
    parts: tuple[ShownPart, ...]
    bodies: tuple[FormattedBody, ...]
    #: True if the body is too long for the timeline.
    is_too_long: bool = False
    #: The name of the tool that the event calls; empty = it calls none.
    tool: str = ""

    @property
    def pieces(self) -> int:
        """The number of events in the line."""
        return self.last - self.first + 1

    @property
    def name(self) -> str:
        """The name of the line, with the numbers of its events."""
        return f"event {self.first}" + (f"–{self.last}" if self.pieces > 1 else "")

    @property
    def is_piece(self) -> bool:
        """True if the next event can belong to the same line."""
        return self.kind == "artifact" and bool(self.what)


#: The moments of events by number.
Moments = Mapping[int, datetime]


def entries(task: int, window: Window, reading: Reading) -> tuple[list[EventEntry], Moments]:
    """Read the events of the window, oldest first, each with its message, and their moments.

    The moments include that of the event before the window.
    """
    numbers = {"task_id": task, "number__range": (window.first, window.last)}
    messages = {
        row["number"]: row
        for row in Message.objects.filter(**numbers)
        .annotate(head=select_start("body"), length=size("body"))
        .values("number", "role", "head", "length")
    }
    events = list(
        Event.objects.filter(task_id=task, number__range=(window.first - 1, window.last))
        .annotate(head=select_start("body"), length=size("body"))
        .order_by("number")
        .values("number", "kind", "state", "run", "created_at", "head", "length")
    )
    moments = {event["number"]: event["created_at"] for event in events}
    shown_ones = [event for event in events if event["number"] >= window.first]
    pairs = [
        (event, messages.get(event["number"], event) if not event["head"] else event)
        for event in shown_ones
    ]
    whole = _read_cut(task, pairs)
    return [_entry(event, source, whole, reading) for event, source in pairs], moments


def _read_cut(task: int, pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Documents:
    """Return the whole documents of the last few bodies that were cut but are not too long: they may hold pictures."""
    long = [
        (event["number"], source is event)
        for event, source in pairs
        if LIMIT < source["length"] <= WHOLE
    ][-WHOLES:]
    found: dict[int, Any] = {}
    for model, of_event in ((Event, True), (Message, False)):
        numbers = [number for number, is_event in long if is_event is of_event]
        rows = model.objects.filter(task_id=task, number__in=numbers)
        for number, body in rows.values_list("number", "body") if numbers else ():
            found[number] = parse_body(body)
    return found


def fold(lines: Iterable[EventEntry], reading: Reading) -> list[EventEntry]:
    """Join consecutive chunks of an artifact, so that a thousand chunks are one line."""
    groups = groupby(lines, lambda line: (line.what, line.run) if line.is_piece else (line.first,))
    return [_join(list(pieces), reading) for _, pieces in groups]


def _join(pieces: list[EventEntry], reading: Reading) -> EventEntry:
    parts = [part for piece in pieces for part in piece.parts]
    make = join_texts if pieces[0].is_piece else render_parts
    return replace(
        pieces[0],
        last=pieces[-1].last,
        parts=make(parts, reading),
        bodies=tuple(body for piece in pieces for body in piece.bodies),
        is_too_long=any(piece.is_too_long for piece in pieces),
    )


def _entry(
    event: Mapping[str, Any], source: Mapping[str, Any], whole: Documents, reading: Reading
) -> EventEntry:
    kind, number = EventKind(event["kind"]), event["number"]
    body = format_body(source["head"], source["length"])
    document = whole.get(number, body.document if body else None)
    what, holder = _read_subject(kind, event, source, document)
    return EventEntry(
        first=number,
        last=number,
        at=event["created_at"],
        run=event["run"],
        kind=kind.name.lower(),
        what=what,
        parts=tuple(read(holder, f"event/{number}", reading)),
        bodies=(body,) if body else (),
        tool=escape_name(str(member(find_call(document), "name") or ""), NAME),
        is_too_long=document is None and bool(body and body.is_cut),
    )


def _read_subject(
    kind: EventKind, event: Mapping[str, Any], source: Mapping[str, Any], document: Any
) -> tuple[str, Any]:
    """Return the subject of an event, and the member that holds its parts."""
    if kind is EventKind.STATUS:
        is_known = event["state"] in set(TaskState)
        state = TaskState(event["state"]).word if is_known else event["state"]
        return state, member(member(document, "status"), "message")
    if kind is EventKind.TOOL:
        message = member(member(document, "status"), "message")
        return "result" if '"data":{"toolResult"' in source["head"] else "call", message
    if kind is EventKind.ARTIFACT:
        artifact = member(document, "artifact")
        return escape_name(str(member(artifact, "artifactId") or ""), NAME), artifact
    role = source.get("role") or member(document, "role")
    return "client" if role == Role.USER else "agent", document


def find_call(event: Any) -> Any:
    """Return the call of a tool in the document of an event; None if it has none."""
    parts = member(member(member(event, "status"), "message"), "parts")
    first = parts[0] if isinstance(parts, list) and parts else None
    return member(member(first, "data"), "toolCall")


def member(holder: Any, name: str) -> Any:
    """Return a member of a JSON object; None if it has none, or is no object."""
    return holder.get(name) if isinstance(holder, dict) else None


def files(task: int) -> list[StoredFile]:
    """Read the rows of the newest files of the task."""
    return list(StoredFile.objects.filter(task_id=task).order_by("-created_at")[:ROWS])


def notes(task: int) -> list[tuple[str, FormattedBody]]:
    """Read the metadata of the task and the agent's memory, as far as there are any."""
    rows = Task.objects.filter(pk=task).values_list(
        select_start("metadata"), size("metadata"), select_start("memory"), size("memory")
    )
    metadata, metadata_size, memory, memory_size = rows[0] if rows else ("", 0, "", 0)
    found = {
        "metadata": format_body(metadata, metadata_size),
        "memory of the agent": format_body(memory, memory_size),
    }
    return [(name, body) for name, body in found.items() if body]


def body_of(task: int, place: str, number: int) -> str:
    """Return the stored body of an event, an artifact (by position) or the status; empty if there is none."""
    if place == "artifact":
        return _body(Artifact.objects.filter(task_id=task, position=number), "body")
    if place == "event":
        event = _body(Event.objects.filter(task_id=task, number=number), "body")
        return event or _body(Message.objects.filter(task_id=task, number=number), "body")
    return _body(Task.objects.filter(pk=task), "status_message") if place == "status" else ""


def _body(rows: QuerySet[Any], column: str) -> str:
    return str(rows.values_list(column, flat=True).first() or "")
