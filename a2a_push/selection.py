"""Which events of a task's log a webhook is told of, and which of them together. Pure.

The law: what is sent is what a stream would show, in its order and each once; joined pieces of an artifact add up to
the same artifact; and the cursor never passes an event that is still to be sent.

* 1.0 and its draft are sent events (A2A 1.0 §4.3.3). An agent says how many: `Agent.push_events`.
* The older dialects are sent the whole Task, when it ends or begins to wait for the client: "significant state changes".
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, EventKind, Recorded
from a2a_tasks.protocol.values import Raw

__all__ = ["SENT_EVENTS", "Detail", "Step", "joined", "next_step"]

#: Dialects whose webhooks are sent events; those of the others are sent Tasks.
SENT_EVENTS = frozenset({"dr", "v10"})
#: Most bytes of pieces that are joined; with more, a notification is sent while the artifact still grows.
LONGEST_JOINED = 256 * 1024


class Detail(enum.StrEnum):
    """How much of a task an agent has its webhooks told: the values of `Agent.push_events`."""

    ALL = "all"  #: every event a stream shows
    COALESCED = "coalesced"  #: the same, with consecutive pieces of one artifact as one
    STATES = "states"  #: changes of the status; artifacts are to be asked for


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What comes next for a webhook."""

    #: One event, or pieces to be joined, oldest first; empty = nothing is to be sent. An event without its body is one
    #: that is too long to be read along with others; it is a step of its own.
    events: tuple[Recorded, ...]
    #: Where the cursor stands once they are delivered.
    through: int


class _Artifact(msgspec.Struct):
    artifact_id: str = msgspec.field(name="artifactId")


class _Piece(msgspec.Struct, rename="camel"):
    """What is looked at of an artifact event."""

    artifact: _Artifact
    append: bool = False
    last_chunk: bool = False


class _Parts(msgspec.Struct):
    parts: list[Raw]


class _Update(msgspec.Struct, rename="camel"):
    """What adds up when pieces are joined; parts are left as text."""

    artifact: _Parts
    last_chunk: bool = False
    metadata: dict[str, Any] = {}


_piece = msgspec.json.Decoder(_Piece).decode
_update = msgspec.json.Decoder(_Update).decode
_tree = msgspec.json.Decoder(dict[str, Any]).decode


def next_step(
    events: Sequence[Recorded], dialect: str, detail: str, *, patient: bool = True
) -> Step | None:
    """The next step after the cursor, from the events there, oldest first; None = wait for more of them.

    A patient webhook waits for the rest of an artifact that may still grow: until its last piece, another artifact or
    a change of the status is in the log, or enough has come. Not to be patient is for a page that is full.
    """
    for position, event in enumerate(events):
        if not _told(event, dialect, detail):
            continue
        if event.kind is not EventKind.ARTIFACT or detail != Detail.COALESCED:
            return Step(events=(event,), through=event.number)
        return _run(events[position:], patient=patient) or _skipped(events[:position])
    return _skipped(events)


def joined(events: Sequence[Recorded]) -> Recorded:
    """Consecutive pieces of one artifact as one event, under the number of the last."""
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


def _told(event: Recorded, dialect: str, detail: str) -> bool:
    if event.kind is EventKind.ARTIFACT:
        return dialect in SENT_EVENTS and detail != Detail.STATES
    if event.kind is not EventKind.STATUS:
        return False
    return dialect in SENT_EVENTS or event.state in TERMINAL | INTERRUPTED


def _skipped(events: Sequence[Recorded]) -> Step | None:
    return Step(events=(), through=events[-1].number) if events else None


def _run(events: Sequence[Recorded], *, patient: bool) -> Step | None:
    """Pieces that belong together, from the first event on; None if more of them may come."""
    if not events[0].body:
        return Step(events=(events[0],), through=events[0].number)
    taken = [events[0]]
    artifact, size = _piece(events[0].body), len(events[0].body)
    whole = artifact.last_chunk
    for event in events[1:]:
        if event.kind is EventKind.INPUT:
            continue
        piece = _continuing(event, artifact)
        size += len(event.body)
        if whole or piece is None or size > LONGEST_JOINED:
            whole = True
            break
        taken.append(event)
        whole = piece.last_chunk
    if patient and not whole:
        return None
    return Step(events=tuple(taken), through=taken[-1].number)


def _continuing(event: Recorded, artifact: _Piece) -> _Piece | None:
    """The piece an event adds to an artifact, if it does."""
    if event.kind is not EventKind.ARTIFACT or not event.body:
        return None
    piece = _piece(event.body)
    same = piece.artifact.artifact_id == artifact.artifact.artifact_id
    return piece if same and piece.append else None
