"""The events, artifacts and files of a task, as its page shows them. Every read is a slice by key, and cut by the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from a2a_tasks.admin.parts import Part, Reading, finished, joined, read
from a2a_tasks.admin.shown import LIMIT, Shown, beginning, named, parsed, shown, size
from a2a_tasks.models import Artifact, Event, Message, StoredFile, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = [
    *("EVENTS", "ROWS", "Entry", "Moments", "Result", "Window"),
    *("artifacts", "body_of", "entries", "files", "folded", "notes"),
]

#: Events on one page.
EVENTS = 200
#: Artifacts, and files, on one page.
ROWS = 100
#: Characters of a body that is read although it is longer than is shown of it, and how many of these on one page.
WHOLE, WHOLES = 400_000, 8
#: Characters of an artifact's id.
NAME = 80
#: Of events or artifacts, by number or position.
Documents = Mapping[int, Any]


@dataclass(frozen=True, kw_only=True)
class Window:
    """The events of a page, by number, and the way to its neighbours."""

    first: int
    last: int
    end: int

    @classmethod
    def at(cls, asked: str, end: int) -> Window:
        """Begin at the event asked for; by default show the newest ones."""
        newest = max(1, end - EVENTS + 1)
        # Longer than any number an event can have; the database would refuse it.
        first = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else newest  # noqa: PLR2004
        first = min(max(1, first), max(1, end))
        return cls(first=first, last=min(end, first + EVENTS - 1), end=end)

    @property
    def older(self) -> int | None:
        """Where the page before begins."""
        return max(1, self.first - EVENTS) if self.first > 1 else None

    @property
    def newer(self) -> int | None:
        """Where the page after begins."""
        return self.last + 1 if self.last < self.end else None

    @property
    def newest(self) -> int:
        """Where the last page begins."""
        return max(1, self.end - EVENTS + 1)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the timeline: an event, or consecutive pieces of one artifact."""

    first: int
    last: int
    at: datetime
    run: int | None
    kind: str
    #: What it is about: the state, who speaks, the artifact.
    what: str
    parts: tuple[Part, ...]
    bodies: tuple[Shown, ...]
    #: Is there more than can be read here?
    is_too_long: bool = False

    @property
    def pieces(self) -> int:
        """Count the events in the line."""
        return self.last - self.first + 1

    @property
    def is_piece(self) -> bool:
        """Can the next event belong to the same line?"""
        return self.kind == "artifact" and bool(self.what)


#: The moment of an event by its number.
Moments = Mapping[int, datetime]


def entries(task: int, window: Window, reading: Reading) -> tuple[list[Entry], Moments]:
    """Read the events of the window, oldest first, each message with its event; and when each was, and the one before them."""
    numbers = {"task_id": task, "number__range": (window.first, window.last)}
    messages = {
        row["number"]: row
        for row in Message.objects.filter(**numbers)
        .annotate(head=beginning("body"), length=size("body"))
        .values("number", "role", "head", "length")
    }
    events = list(
        Event.objects.filter(task_id=task, number__range=(window.first - 1, window.last))
        .annotate(head=beginning("body"), length=size("body"))
        .order_by("number")
        .values("number", "kind", "state", "run", "created_at", "head", "length")
    )
    moments = {event["number"]: event["created_at"] for event in events}
    shown_ones = [event for event in events if event["number"] >= window.first]
    pairs = [(event, _source(event, messages.get(event["number"]))) for event in shown_ones]
    whole = _whole(task, pairs)
    return [_entry(event, source, whole, reading) for event, source in pairs], moments


def _source(event: Mapping[str, Any], message: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return message if message and not event["head"] else event


def _whole(task: int, pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Documents:
    """The documents of the last few bodies that are longer than a page reads of each, but not too long: pictures are in them."""
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
            found[number] = parsed(body)
    return found


def folded(lines: Iterable[Entry], reading: Reading) -> list[Entry]:
    """Join the pieces of an artifact that follow each other, so that a thousand chunks are one line."""
    groups = (list(group) for _, group in groupby(lines, key=_fold_key))
    return [_joined(pieces, reading) for pieces in groups]


def _fold_key(line: Entry) -> tuple[object, ...]:
    return (line.what, line.run) if line.is_piece else (line.first,)


def _joined(pieces: list[Entry], reading: Reading) -> Entry:
    parts = [part for piece in pieces for part in piece.parts]
    make = joined if pieces[0].is_piece else finished
    return replace(
        pieces[0],
        last=pieces[-1].last,
        parts=make(parts, reading),
        bodies=tuple(body for piece in pieces for body in piece.bodies),
        is_too_long=any(piece.is_too_long for piece in pieces),
    )


def _entry(
    event: Mapping[str, Any], source: Mapping[str, Any], whole: Documents, reading: Reading
) -> Entry:
    kind, number = EventKind(event["kind"]), event["number"]
    body = shown(source["head"], source["length"])
    document = whole.get(number, body.document if body else None)
    what, holder = _reading(kind, event, source, document)
    return Entry(
        first=number,
        last=number,
        at=event["created_at"],
        run=event["run"],
        kind=kind.name.lower(),
        what=what,
        parts=tuple(read(holder, f"event/{number}", reading)),
        bodies=(body,) if body else (),
        is_too_long=document is None and bool(body and body.is_cut),
    )


def _reading(
    kind: EventKind, event: Mapping[str, Any], source: Mapping[str, Any], document: Any
) -> tuple[str, Any]:
    """What an event is about, and what has its parts."""
    if kind is EventKind.STATUS:
        known = event["state"] in set(TaskState)
        state = TaskState(event["state"]).word if known else event["state"]
        return state, _member(_member(document, "status"), "message")
    if kind is EventKind.ARTIFACT:
        artifact = _member(document, "artifact")
        return named(str(_member(artifact, "artifactId") or ""), NAME), artifact
    role = source.get("role") or _member(document, "role")
    return "client" if role == Role.USER else "agent", document


def _member(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else None


@dataclass(frozen=True, kw_only=True)
class Result:
    """An artifact of the task; `body` is None while it grows."""

    position: int
    name: str
    first_event: int
    parts: tuple[Part, ...]
    body: Shown | None


def artifacts(task: int, reading: Reading) -> list[Result]:
    """Read the first artifacts, in order of creation."""
    rows = (
        Artifact.objects.filter(task_id=task)
        .annotate(head=beginning("body"), length=size("body"), name=beginning("artifact_id"))
        .order_by("position")
        .values("position", "name", "first_event", "head", "length")[:ROWS]
    )
    found = list(rows)
    long = [row["position"] for row in found if LIMIT < row["length"] <= WHOLE][:WHOLES]
    bodies = Artifact.objects.filter(task_id=task, position__in=long)
    pairs = bodies.values_list("position", "body") if long else ()
    whole = {position: parsed(body) for position, body in pairs}
    return [_result(row, whole, reading) for row in found]


def _result(row: Mapping[str, Any], whole: Documents, reading: Reading) -> Result:
    body, position = shown(row["head"], row["length"]), row["position"]
    document = whole.get(position, body.document if body else None)
    return Result(
        position=position,
        name=named(row["name"], NAME),
        first_event=row["first_event"],
        parts=joined(read(document, f"artifact/{position}", reading), reading),
        body=body,
    )


def files(task: int) -> list[StoredFile]:
    """Read what is known of the newest files of the task."""
    return list(StoredFile.objects.filter(task_id=task).order_by("-created_at")[:ROWS])


def notes(task: int) -> list[tuple[str, Shown]]:
    """Read what is kept beside the task: its metadata and the agent's memory, where there are any."""
    rows = Task.objects.filter(pk=task).values_list(
        beginning("metadata"), size("metadata"), beginning("memory"), size("memory")
    )
    metadata, metadata_size, memory, memory_size = rows[0] if rows else ("", 0, "", 0)
    found = {
        "metadata": shown(metadata, metadata_size),
        "memory of the agent": shown(memory, memory_size),
    }
    return [(name, body) for name, body in found.items() if body]


def body_of(task: int, place: str, number: int) -> str:
    """The stored body of an event, an artifact by its position, or the status; empty if there is none."""
    if place == "artifact":
        return _body(Artifact.objects.filter(task_id=task, position=number), "body")
    if place == "event":
        event = _body(Event.objects.filter(task_id=task, number=number), "body")
        return event or _body(Message.objects.filter(task_id=task, number=number), "body")
    return _body(Task.objects.filter(pk=task), "status_message") if place == "status" else ""


def _body(rows: QuerySet[Any], column: str) -> str:
    return str(rows.values_list(column, flat=True).first() or "")
