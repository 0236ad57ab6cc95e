"""The selection of events for a webhook's next notification, and their joining. Pure.

The law: webhooks get the events of a stream (not those of tools), in its order and each once; joined pieces of an artifact add up to the
same artifact; and the cursor never passes an event that is still to be sent.

* Webhooks of 1.0 and its draft get events (A2A 1.0 §4.3.3). The agent chooses how many: `Agent.push_events`.
* Those of the older dialects get the Task, when it ends or begins to wait for the client: "significant state changes".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from a2a_tasks.protocol.dialects import DIALECTS
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, LogEvent
from a2a_tasks.protocol.values import Raw

__all__ = ["Detail", "SelectionStep", "join", "next_step"]

#: Maximum bytes of joined pieces; with more, a notification is sent while the artifact still grows.
MAX_JOINED_BYTES = 256 * 1024


class Detail(enum.StrEnum):
    """The amount of detail in an agent's webhooks: the values of `Agent.push_events`."""

    ALL = "all"  #: every event of a stream
    COALESCED = "coalesced"  #: every event, with consecutive pieces of one artifact joined
    STATES = "states"  #: changes of the status; clients fetch artifacts


class SelectionStep(msgspec.Struct, frozen=True, kw_only=True):
    """The next step for a webhook."""

    #: One event, or pieces to join, oldest first; empty = nothing to send. An event without its body is too long to be
    #: read with others; it is a step of its own.
    events: tuple[LogEvent, ...]
    #: The cursor after their delivery.
    through: int


class _Artifact(msgspec.Struct):
    artifact_id: str = msgspec.field(name="artifactId")


class _Piece(msgspec.Struct, rename="camel"):
    """The members of an artifact event that selection reads."""

    artifact: _Artifact
    append: bool = False
    last_chunk: bool = False


class _Parts(msgspec.Struct):
    parts: list[Raw]


class _Update(msgspec.Struct, rename="camel"):
    """The members that are added up when pieces are joined; parts stay text."""

    artifact: _Parts
    last_chunk: bool = False
    metadata: dict[str, Any] = {}


_piece = msgspec.json.Decoder(_Piece).decode
_update = msgspec.json.Decoder(_Update).decode
_tree = msgspec.json.Decoder(dict[str, Any]).decode


def next_step(
    events: Sequence[LogEvent], dialect: str, detail: str, *, patient: bool = True
) -> SelectionStep | None:
    """Return the next step after the cursor, from the events there, oldest first; None = wait for more events.

    A patient webhook waits for the rest of an artifact that may still grow: until its last piece, another artifact or a
    change of the status is in the log, or the joined pieces are large enough. A full page of events is not patient.
    """
    for position, event in enumerate(events):
        if not _is_selected(event, dialect, detail):
            continue
        if event.kind is not EventKind.ARTIFACT or detail != Detail.COALESCED:
            return SelectionStep(events=(event,), through=event.number)
        return _run(events[position:], patient=patient) or _skip(events[:position])
    return _skip(events)


def join(events: Sequence[LogEvent]) -> LogEvent:
    """Return consecutive pieces of one artifact as one event, under the number of the last."""
    first, last = events[0], events[-1]
    if first is last:
        return first
    pieces = [_update(event.body) for event in events]
    whole = _tree(first.body)
    whole["artifact"]["parts"] = [part for piece in pieces for part in piece.artifact.parts]
    metadata = {key: value for piece in pieces for key, value in piece.metadata.items()}
    whole |= {"lastChunk": True} if pieces[-1].last_chunk else {}
    whole |= {"metadata": metadata} if metadata else {}
    return msgspec.structs.replace(last, body=write(whole).decode())


def _is_selected(event: LogEvent, dialect: str, detail: str) -> bool:
    gets_events = DIALECTS[dialect].pushes_events
    if event.kind is EventKind.ARTIFACT:
        return gets_events and detail != Detail.STATES
    if event.kind is not EventKind.STATUS:
        return False
    return gets_events or event.state in TERMINAL | INTERRUPTED


def _skip(events: Sequence[LogEvent]) -> SelectionStep | None:
    return SelectionStep(events=(), through=events[-1].number) if events else None


def _run(events: Sequence[LogEvent], *, patient: bool) -> SelectionStep | None:
    """Return the pieces that belong together, from the first event on; None if more of them may come."""
    if not events[0].body:
        return SelectionStep(events=(events[0],), through=events[0].number)
    taken = [events[0]]
    artifact, size = _piece(events[0].body), len(events[0].body)
    whole = artifact.last_chunk
    for event in events[1:]:
        if event.kind in {EventKind.INPUT, EventKind.TOOL}:
            continue
        piece = _find_continued(event, artifact)
        size += len(event.body)
        if whole or piece is None or size > MAX_JOINED_BYTES:
            whole = True
            break
        taken.append(event)
        whole = piece.last_chunk
    if patient and not whole:
        return None
    return SelectionStep(events=tuple(taken), through=taken[-1].number)


def _find_continued(event: LogEvent, artifact: _Piece) -> _Piece | None:
    """Return the piece that an event adds to an artifact; None if it adds none."""
    if event.kind is not EventKind.ARTIFACT or not event.body:
        return None
    piece = _piece(event.body)
    same = piece.artifact.artifact_id == artifact.artifact.artifact_id
    return piece if same and piece.append else None
