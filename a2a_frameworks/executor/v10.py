"""Conversion between the values of a2a-sdk 1.x and the trees of A2A 1.0."""

from __future__ import annotations

import re
from typing import Any

from a2a.types import a2a_pb2
from a2a.utils.errors import A2AError

from a2a_tasks.protobuf_json import Tree, reader, writer

__all__ = ["advise", "find_error_text", "make_request", "make_task", "read_event"]

_EVENTS = {
    a2a_pb2.Message: "message",
    a2a_pb2.Task: "task",
    a2a_pb2.TaskArtifactUpdateEvent: "artifact",
    a2a_pb2.TaskStatusUpdateEvent: "status",
}
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
    "The executor was written for a2a-sdk 0.3, and this environment has 1.x. Install a2a-sdk 0.3.26 into an "
    "environment of its own, or rewrite the executor by "
    "https://github.com/a2aproject/a2a-python/blob/main/docs/migrations/v1_0/README.md: "
    "TaskState.TASK_STATE_WORKING for TaskState.working, Part(text=...) for Part(root=TextPart(...))."
)


def advise(fault: BaseException) -> str:
    """Return the advice for an error that code for a2a-sdk 0.3 causes; empty for other errors."""
    return _ADVICE if _OLD.search(str(fault)) else ""


def find_error_text(fault: BaseException) -> str:
    """Return the words of an error of the protocol, which are meant for the client; empty for other errors."""
    return str(fault.message) if isinstance(fault, A2AError) else ""


def make_request(tree: Tree) -> a2a_pb2.SendMessageRequest:
    """Return a request."""
    return a2a_pb2.SendMessageRequest(**_write_request(tree))


def make_task(tree: Tree) -> a2a_pb2.Task:
    """Return a task."""
    return a2a_pb2.Task(**_write_task(tree))


def read_event(event: Any) -> tuple[str, Tree]:
    """Return the kind of an event (message, task, artifact, status), and its tree. Raises TypeError, ValueError."""
    kind = type(event)
    if kind not in _read:
        name = f"{kind.__module__}.{kind.__qualname__}"
        advice = f" {_ADVICE}" if name.startswith("a2a.") else ""
        raise TypeError(f"{name} is no event: enqueue one of a2a.types.{advice}")
    tree = _read[kind](event)
    if status := tree.get("status"):
        status["state"] = a2a_pb2.TaskState.Name(status.get("state", 0))
    return _EVENTS[kind], tree
