"""Conversion between the values of the host and those of an executor, for any a2a-sdk.

`sdk` is the module for the a2a-sdk that is installed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import msgspec

from a2a_tasks.agents import Part, Turn
from a2a_tasks.agents.emission import Chunk, Emission, Reply, StatusUpdate
from a2a_tasks.protocol.files import SCHEME
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import TaskState

__all__ = ["ExecutorEventReader", "make_request", "make_task", "sdk"]

_GENERATION = "v03" if version("a2a-sdk").startswith("0.") else "v10"
sdk: Any = import_module(f"a2a_frameworks.executor.{_GENERATION}")

Tree = dict[str, Any]

# --- to the executor ------------------------------------------------------------------------


async def make_request(turn: Turn) -> Any:
    """Return the request of a turn, with the content of its files."""
    message = _tree(turn.message)
    await _inline(turn, [message])
    configuration: Tree = {
        "acceptedOutputModes": list(turn.accepted_output_modes),
        "returnImmediately": turn.return_immediately,
    }
    if turn.history_length is not None:
        configuration["historyLength"] = turn.history_length
    tree = {
        "tenant": turn.caller.tenant,
        "message": message,
        "configuration": configuration,
        "metadata": turn.metadata,
    }
    return sdk.make_request(tree)


async def make_task(turn: Turn, state: TaskState | None = None) -> Any:
    """Return the task before the message, with the content of its files; None in the first turn.

    `state`: in this state instead. Executors see a task that is cancelled before its end, and free nothing of an ended one.
    """
    before = await turn.task
    if before is None:
        return None
    tree = _tree(before)
    if state is not None:
        tree["status"] = {**tree["status"], "state": state}
    await _inline(turn, [*tree.get("history", ()), *tree.get("artifacts", ())])
    return sdk.make_task(tree)


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
        kind, tree = sdk.read_event(event)
        match kind:
            case "artifact":
                return list(_artifact(tree))
            case "status":
                return list(self._status(tree["status"], tree.get("metadata")))
            case "message":
                return [Reply(_parts(tree), _join_metadata(tree), _extensions(tree))]
        return list(self._task(tree))

    def _task(self, tree: Tree) -> Iterable[Emission]:
        """Yield the content of the first task; later ones are ignored, as by the server of the a2a-sdk."""
        if self._has_task:
            return
        self._has_task = True
        for artifact in tree.get("artifacts", ()):
            yield from _artifact({"artifact": artifact, "lastChunk": True})
        yield from self._status(tree.get("status", {"state": TaskState.SUBMITTED}), None)

    def _status(self, status: Tree, metadata: Tree | None) -> Iterable[Emission]:
        state = TaskState(status["state"])
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
