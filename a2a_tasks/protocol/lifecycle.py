"""The life cycle of a task: its one table says which state may follow which.

The laws:

* A status event is legal if, and only if, the table has its edge. Anything else raises and changes nothing.
* A terminal state has an empty row: nothing follows it (A2A 1.0 §3.1.1, §4.1.3).
* Artifacts and messages may come in every state that is not terminal; they change no state.
* A message of the client to an interrupted task resumes it: the host records WORKING with the message.

`docs/architecture.md` shows the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec

from a2a_tasks.protocol.values import UNSET, Raw, Task, TaskState, TaskStatus

__all__ = [
    "INTERRUPTED",
    "PREDECESSOR",
    "TERMINAL",
    "TRANSITIONS",
    "EventKind",
    "IllegalTransition",
    "LogEvent",
    "advance",
    "assemble",
    "fold",
    "mark_of",
    "read_status_body",
]

S = TaskState
TERMINAL = frozenset({S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED})
INTERRUPTED = frozenset({S.INPUT_REQUIRED, S.AUTH_REQUIRED})
_FROM_ACTIVE = frozenset({S.WORKING}) | INTERRUPTED | TERMINAL

TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    S.SUBMITTED: _FROM_ACTIVE,
    S.WORKING: _FROM_ACTIVE,
    S.INPUT_REQUIRED: _FROM_ACTIVE,
    S.AUTH_REQUIRED: _FROM_ACTIVE,
    S.COMPLETED: frozenset(),
    S.FAILED: frozenset(),
    S.CANCELED: frozenset(),
    S.REJECTED: frozenset(),
}


#: In the metadata of a task that took over the id of an ended one: the present id of the ended task.
PREDECESSOR = "predecessorTaskId"
_MARK = 8


def mark_of(task: Task) -> str:
    """Return the mark that distinguishes a task from an earlier one of the same id; empty without an earlier one."""
    if task.metadata is None:
        return ""
    predecessor = msgspec.json.decode(task.metadata, type=dict[str, Any]).get(PREDECESSOR)
    return predecessor[:_MARK] if isinstance(predecessor, str) else ""


class IllegalTransition(Exception):
    """The table has no such edge; nothing was changed."""

    def __init__(self, state: TaskState, to: TaskState) -> None:
        super().__init__(f"a task that is {state.word} cannot become {to.word}")
        self.state, self.to = state, to


def advance(state: TaskState, to: TaskState) -> TaskState:
    """Return the next state. Raises IllegalTransition if the table has no edge from `state` to `to`."""
    if to not in TRANSITIONS[state]:
        raise IllegalTransition(state, to)
    return to


class EventKind(enum.IntEnum):
    """The kind of a row in a task's log."""

    INPUT = 1  #: a message of the client was accepted; streams do not show it
    STATUS = 2  #: the status changed (TaskStatusUpdateEvent)
    ARTIFACT = 3  #: an artifact, or a piece of one (TaskArtifactUpdateEvent)
    MESSAGE = 4  #: a direct Message, the answer without a task
    TOOL = 5  #: a call of a tool or its result, as a TaskStatusUpdateEvent for clients that activate the extension


class LogEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the log.

    `body` is JSON text: the Message for INPUT and MESSAGE; `{"status": ...}` for STATUS and TOOL, and
    `{"artifact": ...}` for ARTIFACT, without the ids of the task. `state` is set on STATUS events. `run` is the run that wrote the event.
    """

    number: int
    kind: EventKind
    body: str
    state: TaskState | None = None
    run: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the body in UTF-8."""
        return len(self.body) if self.body.isascii() else len(self.body.encode())


_NOTHING = Raw(b"")


class _StatusText(msgspec.Struct):
    """A status whose message is kept as text (msgspec decodes Raw only where no other type is allowed)."""

    state: TaskState
    timestamp: str
    message: Raw = _NOTHING


class _Status(msgspec.Struct):
    status: _StatusText


class _Pieces(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """An artifact whose parts are kept as text."""

    artifact_id: str
    name: str | None = None
    description: str | None = None
    parts: list[Raw]
    metadata: dict[str, Any] | None = None
    extensions: list[str] = []


class _ArtifactUpdate(msgspec.Struct, rename="camel", kw_only=True):
    artifact: _Pieces
    append: bool = False
    last_chunk: bool = False


_status, _read_update = (
    msgspec.json.Decoder(_Status).decode,
    msgspec.json.Decoder(_ArtifactUpdate).decode,
)
_artifact = msgspec.json.Decoder(_Pieces).decode
_encode = msgspec.json.Encoder().encode


def read_status_body(body: str) -> TaskStatus:
    """Return the status in the body of an event."""
    status = _status(body).status
    message = None if status.message is _NOTHING else status.message
    return TaskStatus(state=status.state, message=message, timestamp=status.timestamp)


def assemble(bodies: Iterable[str], known: Iterable[Raw] = ()) -> dict[str, bytes]:
    """Join artifact events, oldest first, onto the `known` artifacts: artifact id to JSON, in order of creation.

    An appended piece adds parts, any other creates or replaces its artifact (A2A 1.0 §4.2.2).
    """
    artifacts = {artifact.artifact_id: artifact for artifact in map(_artifact, known)}
    for update in map(_read_update, bodies):
        existing = artifacts.get(update.artifact.artifact_id)
        if update.append and existing is not None:
            existing.parts.extend(update.artifact.parts)
        else:
            artifacts[update.artifact.artifact_id] = update.artifact
    return {artifact_id: _encode(artifact) for artifact_id, artifact in artifacts.items()}


def fold(task: Task, events: Iterable[LogEvent]) -> Task:
    """Return the task after the events: the answer of GetTask, computed from the events of a stream (law 6).

    An agent's question enters the history together with its answer.
    """
    status = task.status
    history = [] if task.history is UNSET else list(task.history)
    chunks: list[str] = []
    for event in events:
        if event.kind is EventKind.STATUS:
            status = read_status_body(event.body)
        elif event.kind is EventKind.ARTIFACT:
            chunks.append(event.body)
        elif event.kind is not EventKind.TOOL:
            if event.kind is EventKind.INPUT and status.state in INTERRUPTED and status.message:
                history.append(status.message)
            history.append(Raw(event.body.encode()))
    known = [] if task.artifacts is UNSET else task.artifacts
    artifacts = list(map(Raw, assemble(chunks, known).values())) if chunks else known
    return msgspec.structs.replace(
        task, status=status, history=history or UNSET, artifacts=artifacts or UNSET
    )
