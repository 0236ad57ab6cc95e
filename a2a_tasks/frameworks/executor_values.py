"""Conversion between the values of the a2a-sdk and those of the host."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from a2a.types import a2a_pb2

from a2a_tasks.agents import Part, Turn
from a2a_tasks.agents.emission import Chunk, Emission, Reply, StatusUpdate
from a2a_tasks.protobuf_json import Tree, reader, writer
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import TaskState

__all__ = ["ExecutorEventReader", "find_old_style", "make_request", "make_task"]

_EVENTS = (
    a2a_pb2.Message,
    a2a_pb2.Task,
    a2a_pb2.TaskArtifactUpdateEvent,
    a2a_pb2.TaskStatusUpdateEvent,
)
_read = {kind: reader(kind, limited=False) for kind in _EVENTS}
_write_request = writer(a2a_pb2.SendMessageRequest)
_write_task = writer(a2a_pb2.Task)
#: Errors that code for a2a-sdk 0.3 causes with 1.x.
_OLD = re.compile(
    r"Enum (TaskState|Role) has no value|unknown enum label"
    r'|has no "(root|kind|final|taskId|contextId|messageId|artifactId|lastChunk)" field'
    r"|cannot import name '\w+' from 'a2a\."
)
_ADVICE = (
    "The executor was written for a2a-sdk 0.3, and the host runs those for 1.x. Rewrite it by "
    "https://github.com/a2aproject/a2a-python/blob/main/docs/migrations/v1_0/README.md: "
    "TaskState.TASK_STATE_WORKING for TaskState.working, Part(text=...) for Part(root=TextPart(...))."
)


def find_old_style(fault: BaseException) -> str:
    """Return the advice for an error that code for a2a-sdk 0.3 causes; empty for other errors."""
    return _ADVICE if _OLD.search(str(fault)) else ""


# --- to the executor ------------------------------------------------------------------------


async def make_request(turn: Turn) -> a2a_pb2.SendMessageRequest:
    """Return the request of a turn, with the content of its files."""
    message = _tree(turn.message)
    await _inline(turn, [message])
    tree = {
        "tenant": turn.caller.tenant,
        "message": message,
        "configuration": {"acceptedOutputModes": list(turn.accepted_output_modes)},
        "metadata": turn.metadata,
    }
    return a2a_pb2.SendMessageRequest(**_write_request(tree))


async def make_task(turn: Turn) -> a2a_pb2.Task | None:
    """Return the task before the message, with the content of its files; None in the first turn."""
    before = await turn.task
    if before is None:
        return None
    tree = _tree(before)
    await _inline(turn, [*tree.get("history", ()), *tree.get("artifacts", ())])
    return a2a_pb2.Task(**_write_task(tree))


def _tree(value: Any) -> Tree:
    tree: Tree = msgspec.json.decode(write(value))
    return tree


async def _inline(turn: Turn, holders: Iterable[Tree]) -> None:
    """Replace the host's references to files by their bytes, which an executor cannot read elsewhere."""
    for part in (part for holder in holders for part in holder["parts"]):
        if part.get("url", "").startswith(SCHEME):
            content = await turn.read(Part(url=part.pop("url")))
            part["raw"] = base64.b64encode(content).decode()


# --- from the executor ----------------------------------------------------------------------


class ExecutorEventReader:
    """The reader of the events of one turn: each becomes emissions, or none if the host has said it already."""

    def __init__(self, state: TaskState | None, *, has_task: bool) -> None:
        #: The state that the host or the executor has told the client; None = the answer may be a Message.
        self._state, self._has_task = state, has_task

    def read(self, event: Any) -> list[Emission]:
        """Return the emissions of an event. Raises TypeError for other values, InvalidParams, ValueError."""
        kind = type(event)
        if kind not in _read:
            name = f"{kind.__module__}.{kind.__qualname__}"
            advice = f" {_ADVICE}" if name.startswith("a2a.") else ""
            raise TypeError(f"{name} is no event: enqueue one of a2a.types.{advice}")
        tree = _read[kind](event)
        match event:
            case a2a_pb2.TaskArtifactUpdateEvent():
                return list(_artifact(tree))
            case a2a_pb2.TaskStatusUpdateEvent():
                return list(self._status(tree["status"], tree.get("metadata")))
            case a2a_pb2.Message():
                return [Reply(_parts(tree), _join_metadata(tree), _extensions(tree))]
        return list(self._task(tree))

    def _task(self, tree: Tree) -> Iterable[Emission]:
        """Yield the content of the first task; later ones are ignored, as by the server of the a2a-sdk."""
        if self._has_task:
            return
        self._has_task = True
        for artifact in tree.get("artifacts", ()):
            yield from _artifact({"artifact": artifact, "lastChunk": True})
        yield from self._status(tree.get("status", {"state": a2a_pb2.TASK_STATE_SUBMITTED}), None)

    def _status(self, status: Tree, metadata: Tree | None) -> Iterable[Emission]:
        state = TaskState(a2a_pb2.TaskState.Name(status.get("state", 0)))
        if state is TaskState.SUBMITTED:  # the host has begun the task already
            state = TaskState.WORKING
        message = status.get("message", {})
        parts = _parts(message)
        if state is self._state is TaskState.WORKING and not parts:
            return
        self._state, self._has_task = state, True
        joined = _join_metadata(message, metadata)
        yield StatusUpdate(state, parts, joined, extensions=_extensions(message))


def _artifact(event: Tree) -> Iterable[Emission]:
    """Yield a piece of an artifact. A piece without parts only closes it, as the end of the turn does."""
    artifact = event["artifact"]
    if parts := _parts(artifact):
        yield Chunk(
            artifact_id=artifact.get("artifactId", ""),
            parts=parts,
            append=event.get("append", False),
            last=event.get("lastChunk", False),
            name=artifact.get("name"),
            description=artifact.get("description"),
            metadata=_join_metadata(artifact, event.get("metadata")),
            extensions=_extensions(artifact),
        )


def _parts(holder: Tree) -> tuple[Part, ...]:
    return msgspec.convert(holder.get("parts", ()), tuple[Part, ...])


def _extensions(holder: Tree) -> tuple[str, ...]:
    return tuple(holder.get("extensions", ()))


def _join_metadata(holder: Tree, of_event: Tree | None = None) -> Tree | None:
    """Return the metadata of a message or artifact, with those of its event, which the log has no place for."""
    return {**(of_event or {}), **holder.get("metadata", {})} or None
