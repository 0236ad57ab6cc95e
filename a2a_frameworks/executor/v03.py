"""Conversion between the values of a2a-sdk 0.3 and the trees of A2A 1.0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from a2a_tasks.protocol.dialects.reading import read_tagged_part
from a2a_tasks.protocol.dialects.v03 import V03
from a2a_tasks.protocol.fields import Fields
from a2a_tasks.protocol.values import TaskState

if TYPE_CHECKING:  # a2a-sdk 1.x has the same types
    from typing import Any as ServerError

    from a2a.compat.v0_3 import types
else:
    from a2a import types
    from a2a.utils.errors import ServerError

__all__ = ["advise", "find_error_text", "make_request", "make_task", "read_event"]

Tree = dict[str, Any]
_V03 = V03()
_STATES = {word: state for state, word in V03.states.items()}
_EVENTS: dict[Any, str] = {
    types.Message: "message",
    types.Task: "task",
    types.TaskArtifactUpdateEvent: "artifact",
    types.TaskStatusUpdateEvent: "status",
}


def advise(fault: BaseException) -> str:
    """Return no advice: code for a2a-sdk 1.x cannot be imported here."""
    return ""


def find_error_text(fault: BaseException) -> str:
    """Return the words of an error of the protocol, which are meant for the client; empty for other errors."""
    error = getattr(fault, "error", None) if isinstance(fault, ServerError) else None
    return str(getattr(error, "message", None) or "")


def make_request(tree: Tree) -> types.MessageSendParams:
    """Return a request."""
    configuration = dict(tree["configuration"])
    configuration["blocking"] = not configuration.pop("returnImmediately")
    message = _V03.message(tree["message"])
    return types.MessageSendParams.model_validate(
        {**tree, "configuration": configuration, "message": message}
    )


def make_task(tree: Tree) -> types.Task:
    """Return a task."""
    status = {**tree["status"], "state": V03.states[TaskState(tree["status"]["state"])]}
    if "message" in status:
        status["message"] = _V03.message(status["message"])
    return types.Task.model_validate(
        {
            **tree,
            "status": status,
            "history": [_V03.message(message) for message in tree.get("history", ())],
            "artifacts": [_V03.artifact(artifact, 0) for artifact in tree.get("artifacts", ())],
        }
    )


def read_event(event: Any) -> tuple[str, Tree]:
    """Return the kind of an event (message, task, artifact, status), and its tree. Raises TypeError, ValueError."""
    if type(event) not in _EVENTS:
        raise TypeError(f"{type(event).__qualname__} is no event: enqueue one of a2a.types")
    tree: Tree = event.model_dump(mode="json", by_alias=True, exclude_none=True)
    messages = [tree, *tree.get("artifacts", ()), tree.get("artifact", {})]
    if status := tree.get("status"):
        status["state"] = (_STATES.get(status["state"]) or TaskState(status["state"])).value
        messages.append(status.get("message", {}))
    for holder in messages:
        if "parts" in holder:
            holder["parts"] = [_read_part(part) for part in holder["parts"]]
    return _EVENTS[type(event)], tree


def _read_part(part: Tree) -> Tree:
    fields = Fields.of(part)
    read: Tree = msgspec.to_builtins(read_tagged_part(fields, "kind"))
    fields.check()
    return read
