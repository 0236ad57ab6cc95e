"""What the page of a task shows below its header. Every read is a slice by key, and cut by the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from a2a_tasks.admin.shown import LINE, Shown, beginning, ending, shown, size, text_of
from a2a_tasks.models import Artifact, Event, Message, Run, Step, StoredFile, Task
from a2a_tasks.protocol.lifecycle import EventKind
from a2a_tasks.protocol.values import Role, TaskState

__all__ = ["Entry", "Window", "artifacts", "entries", "files", "folded", "notes", "runs", "steps"]

#: Events on one page.
EVENTS = 200
#: Artifacts and runs on one page.
ROWS = 100


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
    text: str
    bodies: tuple[Shown, ...]

    @property
    def pieces(self) -> int:
        """Count the events in the line."""
        return self.last - self.first + 1


def entries(task: int, window: Window) -> list[Entry]:
    """Read the events of the window, oldest first, each message with its event."""
    numbers = {"task_id": task, "number__range": (window.first, window.last)}
    messages = {
        row["number"]: row
        for row in Message.objects.filter(**numbers)
        .annotate(head=beginning("body"), length=size("body"))
        .values("number", "role", "head", "length")
    }
    events = (
        Event.objects.filter(**numbers)
        .annotate(head=beginning("body"), length=size("body"))
        .order_by("number")
        .values("number", "kind", "state", "run", "created_at", "head", "length")
    )
    return [_entry(event, messages.get(event["number"])) for event in events]


def folded(lines: Iterable[Entry]) -> Iterator[Entry]:
    """Join the pieces of an artifact that follow each other, so that a thousand chunks are one line."""
    for _, group in groupby(lines, key=_fold_key):
        pieces = list(group)
        yield pieces[0] if len(pieces) == 1 else _joined(pieces)


def _fold_key(line: Entry) -> tuple[object, ...]:
    is_piece = line.kind == "artifact" and line.what
    return (line.what, line.run) if is_piece else (line.first,)


def _joined(pieces: list[Entry]) -> Entry:
    text = "".join(piece.text for piece in pieces)
    return Entry(
        first=pieces[0].first,
        last=pieces[-1].last,
        at=pieces[0].at,
        run=pieces[0].run,
        kind=pieces[0].kind,
        what=pieces[0].what,
        text=text if len(text) <= LINE else text[:LINE] + "…",
        bodies=tuple(body for piece in pieces for body in piece.bodies),
    )


def _entry(event: Mapping[str, Any], message: Mapping[str, Any] | None) -> Entry:
    kind = EventKind(event["kind"])
    source = message if message and not event["head"] else event
    body = shown(source["head"], source["length"])
    what, text = _reading(kind, event, message, body)
    return Entry(
        first=event["number"],
        last=event["number"],
        at=event["created_at"],
        run=event["run"],
        kind=kind.name.lower(),
        what=what,
        text=text or ("(too long to be read here)" if body and body.is_cut else ""),
        bodies=(body,) if body else (),
    )


def _reading(
    kind: EventKind, event: Mapping[str, Any], message: Mapping[str, Any] | None, body: Shown | None
) -> tuple[str, str]:
    document = body.document if body else None
    if kind is EventKind.STATUS:
        state = (
            TaskState(event["state"]).word if event["state"] in set(TaskState) else event["state"]
        )
        return state, text_of(_member(_member(document, "status"), "message"))
    if kind is EventKind.ARTIFACT:
        artifact = _member(document, "artifact")
        return str(_member(artifact, "artifactId") or ""), text_of(artifact)
    role = message["role"] if message else _member(document, "role")
    return "client" if role == Role.USER else "agent", text_of(document)


def _member(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, dict) else None


@dataclass(frozen=True, kw_only=True)
class Result:
    """An artifact of the task; `body` is None while it grows."""

    position: int
    name: str
    first_event: int
    text: str
    body: Shown | None


def artifacts(task: int) -> list[Result]:
    """Read the first artifacts, in order of creation."""
    rows = (
        Artifact.objects.filter(task_id=task)
        .annotate(head=beginning("body"), length=size("body"), name=beginning("artifact_id"))
        .order_by("position")
        .values("position", "name", "first_event", "head", "length")[:ROWS]
    )
    return [_result(row) for row in rows]


def _result(row: Mapping[str, Any]) -> Result:
    body = shown(row["head"], row["length"])
    return Result(
        position=row["position"],
        name=row["name"],
        first_event=row["first_event"],
        text=text_of(body.document) if body else "",
        body=body,
    )


def runs(task: int) -> list[tuple[Run, Shown | None]]:
    """Read the newest runs, each with the end of its trace."""
    rows = (
        Run.objects.filter(task_id=task)
        .defer("error", "request", "token")
        .annotate(tail=ending("error"), length=size("error"))
        .order_by("-pk")[:ROWS]
    )
    return [(run, trace(run)) for run in rows]


def trace(run: Any) -> Shown | None:
    """Present the trace of a run that was read with `tail` and `length`; it is text, not JSON."""
    return Shown(text=run.tail, size=run.length) if run.tail else None


def steps(task: int) -> list[tuple[Step, Shown | None]]:
    """Read the newest steps, each with what it returned."""
    rows = (
        Step.objects.filter(task_id=task)
        .defer("result")
        .annotate(head=beginning("result"), length=size("result"))
        .order_by("-input_number", "-created_at", "-name")[:ROWS]
    )
    return [(step, shown(step.head, step.length)) for step in rows]


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
